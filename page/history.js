// One recorded history: its columns as arrays, and what follows from them for any event.
//
// Event n is the n-th of the device; 0 stands for the state before the first. "At event n" is after it: a block lives
// at n if alloc <= n < end. What a reader sees is numberOf(n). Blocks are in order of allocation, which is also the order in which the timeline stacks them.

import { eventOfNumber, numberOfEvent } from './event_numbers.js';
import { formatCount } from './format.js';

const KEPT = 12; // answers: the views ask for the same few moments again and again
const CHUNK = 1024; // blocks for which one latest end is kept, so that a search skips those long gone

export class History {
    constructor(report, columns, index) {
        this.info = report.histories[index];
        this.index = index;
        this.strings = report.strings;
        this.columns = columns;
        this.prefix = this.info.prefix ?? `h${index}.`;
        this.events = this.info.events;
        this.last = this.events - 1;
        this.hasReserved = this.info.has_reserved !== false;
        this.blocks = this.info.blocks;
        this.blockAlloc = this.column('b.alloc');
        this.blockEnd = endsOf(this.blockAlloc, this.column('b.free'), this.events);
        this.blockSize = this.column('b.size');
        this.segments = this.info.segments;
        this.segmentAlloc = this.column('s.alloc');
        this.segmentEnd = endsOf(this.segmentAlloc, this.column('s.free'), this.events);
        this.segmentSize = this.column('s.size');
        this.allocated = sumOverTime(this.blockAlloc, this.blockEnd, this.blockSize, this.events);
        this.reserved = sumOverTime(this.segmentAlloc, this.segmentEnd, this.segmentSize, this.events);
        this.latestEnds = latestEnds(this.blockEnd);
        this.peak = indexOfMaximum(this.allocated, 0, this.last);
        this.top = Math.max(this.allocated[this.peak], maximumOf(this.reserved), 1);
    }

    numberOf(event) {
        return numberOfEvent(this.columns, this.prefix, event);
    }

    eventOf(number) {
        return eventOfNumber(this.columns, this.prefix, number, this.events);
    }

    // "event 3,432", or "the start": before the first.
    eventName(event) {
        return event < 1 ? 'the start' : `event ${formatCount(this.numberOf(event))}`;
    }

    column(name) {
        return this.columns.get(this.prefix + name);
    }

    // A column that a producer may leave out reads as zeros.
    optional(name, count) {
        if (this.columns.has(this.prefix + name)) return this.column(name);
        this.zeros ??= new Map();
        if (!this.zeros.has(count)) this.zeros.set(count, new Uint8Array(count));
        return this.zeros.get(count);
    }

    ofEvents(name) {
        return this.optional(`e.${name}`, this.events);
    }

    ofSegments(name) {
        return this.optional(`s.${name}`, this.segments);
    }

    ofBlocks(name) {
        return this.optional(`b.${name}`, this.blocks);
    }

    // The number of blocks that were allocated at or before EVENT: they are the first ones.
    allocatedUpTo(event) {
        let low = 0,
            high = this.blocks;
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (this.blockAlloc[middle] <= event) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    // The blocks that live at EVENT, in order of allocation: not to be changed, the last answers are kept.
    liveBlocks(event) {
        this.liveAt ??= new Map();
        if (!this.liveAt.has(event)) {
            if (this.liveAt.size >= KEPT) this.liveAt.delete(this.liveAt.keys().next().value);
            this.liveAt.set(event, this.findLive(event));
        }
        return this.liveAt.get(event);
    }

    findLive(event) {
        const live = [];
        const count = this.allocatedUpTo(event);
        for (let from = 0; from < count; from += CHUNK) {
            if (this.latestEnds[from / CHUNK] <= event) continue;
            const to = Math.min(from + CHUNK, count);
            for (let i = from; i < to; i++) if (this.blockEnd[i] > event) live.push(i);
        }
        return live;
    }

    liveSegments(event) {
        const live = [];
        for (let i = 0; i < this.segments; i++)
            if (this.segmentAlloc[i] <= event && this.segmentEnd[i] > event) live.push(i);
        return live;
    }

    // [{ event, bytes, oom }] of each out-of-memory: OOM is what is known of it, or of the first like it, or null.
    refusals() {
        this.refused ??= this.listRefusals();
        return this.refused;
    }

    listRefusals() {
        const [events, bytes, items] = ['event', 'bytes', 'item'].map((name) => this.column(`o.${name}`));
        return Array.from(events, (event, i) => ({
            event,
            bytes: bytes[i],
            oom: this.info.ooms?.[items[i] - 1] ?? null,
        }));
    }

    // The event at which the owner of BLOCK asked for its free; it may be reused only from its end on.
    askedToFree(block) {
        const asked = this.ofBlocks('asked')[block];
        return asked ? this.blockAlloc[block] + asked : 0;
    }

    // Bytes at EVENT that the owner has freed and that wait for a stream, PyTorch's active_pending_free: part of what is
    // allocated there. A free that completes with the next event waited for nobody.
    waiting(event) {
        this.waitingSums ??= this.sumWaiting();
        return this.waitingSums[event];
    }

    sumWaiting() {
        const asked = this.ofBlocks('asked'); // events after the allocation
        const starts = this.blockEnd.map((end, block) => {
            const freed = this.blockAlloc[block] + asked[block];
            return asked[block] && freed + 1 < end ? freed : end;
        });
        return sumOverTime(starts, this.blockEnd, this.blockSize, this.events);
    }

    timeOf(event) {
        if (!this.info.has_time || !this.columns.has(`${this.prefix}e.time`) || event < 1) return null;
        return this.column('e.time')[event];
    }

    stackText(id) {
        return id < 0 ? [] : framesOf(this.stackTree(), id);
    }

    stackTree() {
        this.stacks ??= readStacks(this.columns, this.strings, this.prefix);
        return this.stacks;
    }

    lineName(line) {
        if (line < 0) return 'no line recorded';
        this.lineNames ??= new Map();
        if (!this.lineNames.has(line)) {
            const file = this.strings[columnOf(this.columns, this.prefix, 'l.file')[line]] ?? '?';
            this.lineNames.set(line, `${file}:${columnOf(this.columns, this.prefix, 'l.line')[line]}`);
        }
        return this.lineNames.get(line);
    }

    // What a case calls a block, which is the function of its one frame; null: the history is of a program.
    nameOf(block) {
        const id = this.ofBlocks('stack')[block] - 1;
        if (this.info.categories?.length > 1 || id < 0) return null;
        const { strings, name, frame } = this.stackTree();
        return strings[name[frame[id]]] ?? null;
    }

    lineOf(block) {
        return this.lineName(this.ofBlocks('line')[block] - 1);
    }
}

// Stacks, frames and lines may belong to one history or be shared by all.
function columnOf(columns, prefix, name) {
    return columns.has(prefix + name)
        ? columns.get(prefix + name)
        : columns.has(name)
          ? columns.get(name)
          : [];
}

function readStacks(columns, strings, prefix) {
    const get = (name) => columnOf(columns, prefix, name);
    return {
        strings,
        parent: get('k.parent'),
        frame: get('k.frame'),
        file: get('f.file'),
        line: get('f.line'),
        name: get('f.name'),
        user: get('f.user'),
    };
}

// The frames of stack ID, innermost first.
function framesOf(stacks, id) {
    const frames = [];
    for (let at = id; at >= 0 && frames.length < 10000; at = stacks.parent[at] - 1) {
        const frame = stacks.frame[at];
        if (frame === undefined) break;
        frames.push({ id: at, text: frameText(stacks, frame), user: stacks.user[frame] === 1 });
    }
    return frames;
}

export function frameText(stacks, frame) {
    const file = stacks.strings[stacks.file[frame]] ?? '?';
    const name = stacks.strings[stacks.name[frame]] ?? '?';
    return file ? `${name}  ${file}:${stacks.line[frame]}` : name;
}

// What lives on ends at EVENTS, one after the last.
function endsOf(starts, lengths, events) {
    const ends = new Uint32Array(starts.length);
    for (let i = 0; i < ends.length; i++) ends[i] = lengths[i] ? starts[i] + lengths[i] : events;
    return ends;
}

// SUM[n] = what lives at event n.
function sumOverTime(starts, ends, sizes, events) {
    const sum = new Float64Array(events + 1);
    for (let i = 0; i < starts.length; i++) {
        sum[starts[i]] += sizes[i];
        sum[ends[i]] -= sizes[i];
    }
    for (let i = 1; i < sum.length; i++) sum[i] += sum[i - 1];
    return sum;
}

function latestEnds(ends) {
    const latest = new Uint32Array(Math.ceil(ends.length / CHUNK));
    for (let i = 0; i < ends.length; i++) {
        const chunk = Math.floor(i / CHUNK);
        if (ends[i] > latest[chunk]) latest[chunk] = ends[i];
    }
    return latest;
}

export function indexOfMaximum(values, from, to) {
    let best = from;
    for (let i = from + 1; i <= to; i++) if (values[i] > values[best]) best = i;
    return best;
}

function maximumOf(values) {
    return values[indexOfMaximum(values, 0, values.length - 1)];
}
