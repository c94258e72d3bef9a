// torch_frames.cpp - stacks of Python frames, each kept once and known by a number.
//
// Most requests come from where earlier ones came from: a stack is found again by what it is made
// of, the code and the instruction of each frame, without a lock and without Python. What a place
// is in words is asked when it is met first; a report needs no Python any more.
#include "python_frames.h"
#include "torch_symbols.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace
{

// --- stacks as they are found again --------------------------------------------------------------

// The frames' products do not wait for each other; an odd factor of its own tells each one's turn.
uint64_t hash_of(const python_walk &walk)
{
    constexpr uint64_t multiplier = 0x9e3779b97f4a7c15u, step = 0x5851f42d4c957f2eu;
    uint64_t hash = walk.count, factor = multiplier;
    for (size_t i = 0; i < walk.count; i++, factor += step) {
        const python_place &p = walk.places[i];
        const auto at = static_cast<uint32_t>(p.at), kind = static_cast<uint32_t>(p.kind);
        hash += (reinterpret_cast<uintptr_t>(p.code) ^ uint64_t{at} << 44 ^ uint64_t{kind} << 62) *
                factor;
    }
    hash = (hash ^ hash >> 32) * multiplier;
    return hash ^ hash >> 32;
}

static_assert(sizeof(python_place) == 16, "places are compared as bytes");

struct found_stack {
    uint64_t hash;
    uint32_t number;
    uint32_t count;
    std::unique_ptr<python_place[]> places;

    bool is(uint64_t other_hash, const python_walk &walk) const
    {
        return hash == other_hash && count == walk.count &&
               std::memcmp(walk.places, places.get(), count * sizeof places[0]) == 0;
    }
};

// Read without a lock: what is in it stays. At most half full.
struct found_table {
    size_t mask;
    std::unique_ptr<std::atomic<const found_stack *>[]> slots;

    explicit found_table(size_t size)
        : mask(size - 1), slots(new std::atomic<const found_stack *>[size]())
    {
    }

    const found_stack *find(uint64_t hash, const python_walk &walk) const
    {
        size_t at = hash & mask;
        const found_stack *s = slots[at].load(std::memory_order_acquire);
        while (s && !s->is(hash, walk)) {
            at = (at + 1) & mask;
            s = slots[at].load(std::memory_order_acquire);
        }
        return s;
    }

    void add(const found_stack *s)
    {
        size_t at = s->hash & mask;
        while (slots[at].load(std::memory_order_relaxed)) {
            at = (at + 1) & mask;
        }
        slots[at].store(s, std::memory_order_release);
    }
};

// --- what is known -------------------------------------------------------------------------------

constexpr size_t most_bytes = 64u << 20; // of all stacks together
constexpr size_t most_places = 1u << 17; // their codes live for good
constexpr uint32_t no_room = 1;
constexpr char no_room_line[] = ":0:(a stack beyond those that there is room for)";

using line_list = std::vector<uint32_t>; // numbers of lines, the innermost frame's first

struct hash_of_place {
    size_t operator()(const python_place &p) const
    {
        python_walk one;
        one.count = 1;
        one.places[0] = p;
        return hash_of(one);
    }
};

struct hash_of_lines {
    size_t operator()(const line_list &lines) const
    {
        uint64_t hash = lines.size();
        for (const uint32_t line : lines) {
            hash = (hash ^ line) * 0x9e3779b97f4a7c15u;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

// Called before a number is given: nothing that throws may come after that.
template <typename Value> void make_room(std::vector<Value> &list)
{
    if (list.size() == list.capacity()) {
        list.reserve(list.size() * 2);
    }
}

// Never destroyed, for blocks are freed at the very end. A stack's number is that of its lines: the
// same line may be reached by several instructions.
struct known_stacks {
    std::atomic<found_table *> found{new found_table(1024)};
    std::mutex lock;                                          // of all that follows
    std::vector<std::unique_ptr<found_table>> earlier_tables; // which others may still read
    std::vector<std::unique_ptr<found_stack>> all_found;
    std::unordered_map<python_place, uint32_t, hash_of_place> lines_of_places;
    std::unordered_map<std::string, uint32_t> line_numbers; // from 1; 0: no line
    std::vector<const std::string *> lines{nullptr};
    std::unordered_map<line_list, uint32_t, hash_of_lines> numbers; // from 1
    std::vector<const line_list *> stacks{nullptr};
    size_t bytes = 0;

    known_stacks()
    {
        add_stack({line_of(no_room_line)});
    }

    uint32_t line_of(const std::string &words)
    {
        make_room(lines);
        const auto added = line_numbers.emplace(words, static_cast<uint32_t>(lines.size()));
        if (added.second) {
            lines.push_back(&added.first->first);
        }
        return added.first->second;
    }

    uint32_t add_stack(line_list made)
    {
        make_room(stacks);
        const auto added = numbers.emplace(std::move(made), static_cast<uint32_t>(stacks.size()));
        if (added.second) {
            stacks.push_back(&added.first->first);
            bytes += sizeof(line_list) + added.first->first.size() * sizeof(uint32_t);
        }
        return added.first->second;
    }

    void add_found(uint64_t hash, const python_walk &walk, uint32_t number)
    {
        std::unique_ptr<python_place[]> places(new python_place[walk.count]);
        std::copy(walk.places, walk.places + walk.count, places.get());
        found_table *table = found.load(std::memory_order_relaxed);
        all_found.emplace_back(
            new found_stack{hash, number, static_cast<uint32_t>(walk.count), std::move(places)});
        bytes += sizeof(found_stack) + walk.count * sizeof(python_place);
        if (all_found.size() * 2 > table->mask) {
            auto larger = std::make_unique<found_table>((table->mask + 1) * 2);
            for (const auto &s : all_found) {
                larger->add(s.get());
            }
            earlier_tables.emplace_back(table);
            found.store(larger.release(), std::memory_order_release);
        } else {
            table->add(all_found.back().get());
        }
    }
};

known_stacks &the_known()
{
    static auto &known = *new known_stacks;
    return known;
}

// --- stacks that are met first -------------------------------------------------------------------

// Asks Python for what is not known yet. Its lock is held, and not ours: Python may let others in.
void name_places(known_stacks &known, const python_hold &hold, const python_walk &walk)
{
    for (size_t i = 0; i < walk.count; i++) {
        const python_place &place = walk.places[i];
        bool is_known = false;
        {
            const std::lock_guard<std::mutex> locked(known.lock);
            is_known = known.lines_of_places.count(place) != 0 ||
                       known.lines_of_places.size() >= most_places;
        }
        if (is_known) {
            continue;
        }
        const std::string words = hold.words_of(place);
        const std::lock_guard<std::mutex> locked(known.lock);
        const uint32_t line = words.empty() ? 0 : known.line_of(words);
        if (known.lines_of_places.emplace(place, line).second) {
            hold.keep(place);
        }
    }
}

// 0: a place of it is not known and there is room for more; then nothing is changed.
uint32_t add_stack(known_stacks &known, const python_walk &walk)
{
    const uint64_t hash = hash_of(walk);
    const std::lock_guard<std::mutex> locked(known.lock);
    const found_stack *found = known.found.load(std::memory_order_relaxed)->find(hash, walk);
    if (found) {
        return found->number;
    }
    line_list lines;
    for (size_t i = 0; i < walk.count; i++) {
        const auto place = known.lines_of_places.find(walk.places[i]);
        if (place == known.lines_of_places.end()) {
            return known.lines_of_places.size() < most_places ? 0 : no_room;
        }
        if (place->second) {
            lines.push_back(place->second);
        }
    }
    if (known.bytes > most_bytes) {
        return no_room;
    }
    const uint32_t number = known.add_stack(std::move(lines));
    known.add_found(hash, walk, number);
    return number;
}

uint32_t add_by_python(known_stacks &known, python_walk &walk, bool is_read)
{
    python_hold hold;
    if (!is_read) {
        hold.take_frames(walk);
    }
    if (walk.count == 0) {
        return 0;
    }
    name_places(known, hold, walk);
    const uint32_t number = add_stack(known, walk);
    return number ? number : no_room;
}

thread_local bool is_asking; // Python, which may allocate and free: such a request has no stack

uint32_t meet_stack(python_walk &walk, bool is_read)
{
    uint32_t number = 0;
    if (is_asking) {
        return 0;
    }
    is_asking = true;
    try {
        known_stacks &known = the_known();
        number = is_read ? add_stack(known, walk) : 0;
        number = number ? number : add_by_python(known, walk, is_read);
    } catch (const std::bad_alloc &) {
        number = no_room;
    }
    is_asking = false;
    return number;
}

// --- telling them --------------------------------------------------------------------------------

// Whole lines only: outer frames that do not fit are left out.
size_t write_lines(uint32_t stack, char *text, size_t size)
{
    known_stacks &known = the_known();
    const std::lock_guard<std::mutex> locked(known.lock);
    size_t length = 0;
    if (stack == 0 || stack >= known.stacks.size()) {
        return 0;
    }
    for (const uint32_t line : *known.stacks[stack]) {
        const std::string &words = *known.lines[line];
        if (words.size() + 1 > size - length) {
            break;
        }
        std::memcpy(text + length, words.data(), words.size());
        length += words.size();
        text[length++] = '\n';
    }
    return length;
}

std::atomic<bool> is_allowed;

} // namespace

// The number of the calling thread's stack of Python frames; 0: it has none, as a thread that
// Python does not know.
TORCH_EXPORT uint32_t gmd_torch_keep_stack()
{
    python_walk walk;
    if (!is_allowed.load(std::memory_order_relaxed) || !python_knows_this_thread()) {
        return 0;
    }
    const bool is_read = python_read_frames(walk);
    if (is_read && walk.count) {
        const found_table *table = the_known().found.load(std::memory_order_acquire);
        if (const found_stack *found = table->find(hash_of(walk), walk)) {
            return found->number;
        }
    }
    return is_read && !walk.count ? 0 : meet_stack(walk, is_read);
}

// A line FILE:LINE:FUNCTION for each frame, the innermost first; what does not fit is left out. At
// any time, when Python has ended, too.
TORCH_EXPORT size_t gmd_torch_stack_text(uint32_t stack, char *text, size_t size)
{
    return write_lines(stack, text, size);
}

// Whether that takes no call of Python where the stack is known.
TORCH_EXPORT int gmd_torch_reads_frames()
{
    return python_reads_frames();
}

// The current thread's frames as gmd_stack_source wants them.
TORCH_EXPORT size_t gmd_torch_python_stack(void *context, char *text, size_t size)
{
    (void)context;
    return write_lines(gmd_torch_keep_stack(), text, size);
}

// Whether Python may be asked; not any more when it ends.
TORCH_EXPORT void gmd_torch_allow_python(int is_on)
{
    is_allowed.store(is_on != 0);
}
