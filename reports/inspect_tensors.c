/* inspect_tensors.c - the tensors that are alive, and who holds them, for people. */
#include "inspect.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_TENSORS = 40, SHOWN_WAYS = 25, NAME_MOST = 60 };

static const char *bold(gmd_terminal terminal)
{
    return terminal.color ? "\033[1m" : "";
}

static const char *plain(gmd_terminal terminal)
{
    return terminal.color ? "\033[0m" : "";
}

const char *gmd_holder_words(uint32_t holder)
{
    static const char *const words[GMD_HOLDERS] = {
        [GMD_HELD_BY_NAME] = "tensors that a name leads to",
        [GMD_HELD_AS_GRAD] = "their gradients (.grad)",
        [GMD_HELD_BY_STATE] = "optimizer state",
        [GMD_HELD_BY_GRAPH] = "saved by the graph for backward()",
        [GMD_HELD_BY_CYCLE] = "held by reference cycles only, until the collector runs",
        [GMD_HELD_BY_LIBRARY] = "workspaces of cuBLAS",
        [GMD_HELD_INSIDE] = "results of expressions and operations under way",
    };
    return holder < GMD_HOLDERS ? words[holder] : "?";
}

static void put_moment(const gmd_inspection *inspection, FILE *out)
{
    if (*inspection->taken_at) {
        fputs("at the end of the phase ", out);
        gmd_put_line_text(inspection->taken_at, out);
    } else {
        fputs("at the end of the script", out);
    }
}

/* --- tensors ----------------------------------------------------------------------------- */

/* Long names keep both ends; --retention and --json have them in full. */
static void shorten(char *text)
{
    static const char gap[] = " ... ";
    size_t length = strlen(text), head = (NAME_MOST - strlen(gap)) / 2;
    if (length > NAME_MOST) {
        size_t tail = NAME_MOST - head - strlen(gap);
        memcpy(text + head, gap, strlen(gap));
        memmove(text + head + strlen(gap), text + length - tail, tail + 1);
    }
}

/* "weight_hh_l0(->weight_ih_l0)", as pytorch_memlab writes a shared storage. */
static void name_of(const gmd_inspection *inspection, const gmd_tensor_row *row, char *text,
                    size_t size)
{
    char owner[160];
    gmd_inspection_path(inspection, row, false, text, size);
    const gmd_tensor_row *shared =
        row->shares == GMD_INSPECT_NONE ? NULL : gmd_inspection_tensor(inspection, row->shares);
    if (shared) {
        size_t used = strlen(text);
        gmd_inspection_path(inspection, shared, false, owner, sizeof owner);
        snprintf(text + used, size - used, "(->%s)", owner);
    }
    shorten(text);
}

static uint32_t shown_rows(const gmd_inspection *inspection, int *name_width)
{
    const gmd_tensor_row *row;
    uint32_t count = 0;
    *name_width = (int)strlen("Element type");
    for (; count < SHOWN_TENSORS && (row = gmd_inspection_tensor(inspection, count)); count++) {
        char name[400];
        name_of(inspection, row, name, sizeof name);
        size_t length = strlen(name);
        *name_width = length > (size_t)*name_width ? (int)length : *name_width;
    }
    return count;
}

static void put_tensor(const gmd_inspection *inspection, const gmd_tensor_row *row, int name_width,
                       FILE *out)
{
    char name[400], used[24], more[24], line[16] = "";
    bool is_shared = row->shares != GMD_INSPECT_NONE;
    uint64_t rounding = !is_shared && row->used > row->asked ? row->used - row->asked : 0;
    name_of(inspection, row, name, sizeof name);
    if (row->line) {
        snprintf(line, sizeof line, "%u", row->line);
    }
    fputs("  ", out);
    gmd_put_line_text(name, out);
    int missing = name_width - (int)strlen(name);
    fprintf(out, "%*s  %20s  %8s  %10s  %9s  %4s  %s\n", missing > 0 ? missing : 0, "",
            gmd_inspection_text(inspection, row->shape),
            gmd_inspection_text(inspection, row->dtype),
            gmd_format_short_size(is_shared ? 0 : row->used, used),
            rounding ? gmd_format_short_size(rounding, more) : "", line,
            gmd_category_name(row->category));
}

static void put_held(const gmd_held *held, const char *words, FILE *out)
{
    char used[24], count[32];
    if (held->blocks) {
        fprintf(out, "  %10s  %7s %-6s  %s\n", gmd_format_short_size(held->used, used),
                gmd_format_count(held->blocks, count), held->blocks == 1 ? "block" : "blocks",
                words);
    }
}

static void put_rounding(const gmd_held *held, const char *words, FILE *out)
{
    gmd_held extra = {held->blocks, 0, held->used - held->asked};
    if (held->used > held->asked) {
        put_held(&extra, words, out);
    }
}

static void put_sums(const gmd_inspection *inspection, FILE *out)
{
    char allocated[24], asked[24], reserved[24], rest[24];
    uint64_t used_sum = 0, asked_sum = 0;
    for (int i = 0; i < GMD_HOLDERS; i++) {
        used_sum += inspection->held[i].used;
        asked_sum += inspection->held[i].asked;
    }
    fprintf(out, "  Allocated: %s, %s of it asked for; reserved: %s\n",
            gmd_format_short_size(inspection->allocated, allocated),
            gmd_format_short_size(asked_sum, asked),
            gmd_format_short_size(inspection->reserved, reserved));
    for (uint32_t i = 0; i < GMD_HOLDERS; i++) {
        put_held(&inspection->held[i], gmd_holder_words(i), out);
    }
    if (!inspection->uses_are_known) {
        fputs("  The allocator keeps no statistics: what it uses beyond what is asked for is not "
              "seen.\n",
              out);
        return;
    }
    if (used_sum != inspection->allocated) {
        bool is_less = used_sum < inspection->allocated;
        uint64_t difference =
            is_less ? inspection->allocated - used_sum : used_sum - inspection->allocated;
        fprintf(out, "  %10s  %s\n", gmd_format_short_size(difference, rest),
                is_less ? "allocated otherwise" : "of these are not counted as allocated");
    }
    fputs(inspection->small.blocks || inspection->large.blocks
              ? "  Of this more than was asked for:\n"
              : "",
          out);
    put_rounding(&inspection->small, "of rounding, less than 512 B each", out);
    put_rounding(&inspection->large, "of 512 B and more each: blocks that were not split", out);
}

void gmd_inspect_tensors(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    int name_width;
    uint32_t shown = shown_rows(inspection, &name_width);
    fprintf(out, "  %sTensors ", bold(terminal));
    put_moment(inspection, out);
    fprintf(out, "%s\n", plain(terminal));
    fprintf(out, "  %s%-*s  %20s  %8s  %10s  %9s  %4s  %s%s\n", bold(terminal), name_width,
            "Element type", "Size", "dtype", "Used MEM", "rounding", "line", "category",
            plain(terminal));
    for (uint32_t i = 0; i < shown; i++) {
        put_tensor(inspection, gmd_inspection_tensor(inspection, i), name_width, out);
    }
    uint64_t left = 0, bytes = 0;
    const gmd_tensor_row *row;
    for (uint32_t i = shown; (row = gmd_inspection_tensor(inspection, i)); i++) {
        left++;
        bytes += row->shares == GMD_INSPECT_NONE ? row->used : 0;
    }
    left += inspection->tensors_dropped;
    if (left) {
        char count[32], size[24];
        fprintf(out, "  ... %s smaller ones with %s; --json has them ...\n",
                gmd_format_count(left, count), gmd_format_short_size(bytes, size));
    }
    put_sums(inspection, out);
}

/* --- retention --------------------------------------------------------------------------- */

static void put_way(const gmd_inspection *inspection, const gmd_way *way, FILE *out)
{
    char used[24], count[32], line[16] = "", path[512];
    const gmd_tensor_row *row = gmd_inspection_tensor(inspection, way->row);
    if (way->line) {
        snprintf(line, sizeof line, "%u", way->line);
    }
    fprintf(out, "  %10s  %7s  %4s  ", gmd_format_short_size(way->used, used),
            gmd_format_count(way->tensors, count), line);
    bool is_single = way->tensors == 1 && row;
    gmd_put_line_text(is_single ? gmd_inspection_path(inspection, row, false, path, sizeof path)
                                : way->pattern,
                      out);
    putc('\n', out);
}

void gmd_inspect_retention(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal)
{
    size_t count;
    gmd_way *ways = gmd_ways_of_holding(inspection, &count);
    fprintf(out, "  %sWho holds what is alive ", bold(terminal));
    put_moment(inspection, out);
    fprintf(out, "%s\n  %s%10s  %7s  %4s  held by%s\n", plain(terminal), bold(terminal), "Used MEM",
            "tensors", "line", plain(terminal));
    uint64_t left_ways = 0, left_tensors = 0, left_bytes = 0, sharing = 0;
    for (size_t i = 0; i < count; i++) {
        if (ways[i].used == 0) {
            sharing += ways[i].tensors;
        } else if (i < SHOWN_WAYS) {
            put_way(inspection, &ways[i], out);
        } else {
            left_ways++;
            left_tensors += ways[i].tensors;
            left_bytes += ways[i].used;
        }
    }
    char tensors[32], size[24];
    if (left_ways) {
        fprintf(out, "  ... %" PRIu64 " more ways: %s tensors, %s; --json has them ...\n",
                left_ways, gmd_format_count(left_tensors, tensors),
                gmd_format_short_size(left_bytes, size));
    }
    if (sharing) {
        fprintf(out, "  %10s  %7s        share the blocks of these\n", "",
                gmd_format_count(sharing, tensors));
    }
    free(ways);
}
