// Sums of blocks by the user's line, or by category where no stacks were recorded: what lives at a moment, what a span
// changed, and how two moments differ.

import { formatBytes, plural } from './format.js';

// { word, keys, name(key), changes(name): what shows its blocks }
export function groupingOf(history) {
    history.grouping ??= history.ofBlocks('line').some((line) => line > 0)
        ? {
              word: 'Line',
              keys: history.ofBlocks('line'),
              name: (key) => history.lineName(key - 1),
              changes: (line) => ({ line, query: null }),
          }
        : {
              word: 'Category',
              keys: history.ofBlocks('category'),
              name: (key) => history.info.categories?.[key] ?? `category ${key}`,
              changes: (query) => ({ query, line: null }),
          };
    return history.grouping;
}

function lineSums() {
    const sums = new Map();
    return {
        sums,
        at(line) {
            if (!sums.has(line))
                sums.set(line, { line, bytes: 0, count: 0, allocated: 0, freed: 0, kept: 0 });
            return sums.get(line);
        },
    };
}

// [{ name, bytes, count }], the largest first.
export function linesAt(history, event) {
    const { sums, at } = lineSums();
    const lines = groupingOf(history).keys;
    for (const block of history.liveBlocks(event)) {
        const sum = at(lines[block]);
        sum.bytes += history.blockSize[block];
        sum.count++;
    }
    return named(history, sums).sort((a, b) => b.bytes - a.bytes);
}

// What was allocated and freed from event FROM to event TO, both included, and what of the allocated still lives then.
export function linesInSpan(history, from, to) {
    const { sums, at } = lineSums();
    const lines = groupingOf(history).keys;
    const until = history.allocatedUpTo(to);
    for (let block = 0; block < until; block++) {
        const begins = history.blockAlloc[block] >= Math.max(from, 1),
            ends = history.blockEnd[block] >= from && history.blockEnd[block] <= to;
        if (!begins && !ends) continue;
        const sum = at(lines[block]),
            size = history.blockSize[block];
        sum.count += begins ? 1 : 0;
        sum.allocated += begins ? size : 0;
        sum.freed += ends ? size : 0;
        sum.kept += begins && !ends ? size : 0;
    }
    return named(history, sums).sort((a, b) => b.kept - a.kept || b.allocated - a.allocated);
}

// Lines of two moments, also of two histories, matched by name: [{ name, one, other }] with the largest change first.
export function linesCompared(one, other) {
    const rows = new Map();
    const row = (name) => {
        if (!rows.has(name)) rows.set(name, { name, one: 0, other: 0 });
        return rows.get(name);
    };
    for (const { name, bytes } of one) row(name).one += bytes;
    for (const { name, bytes } of other) row(name).other += bytes;
    return [...rows.values()].sort((a, b) => Math.abs(b.other - b.one) - Math.abs(a.other - a.one));
}

function named(history, sums) {
    return [...sums.values()].map((sum) => ({ ...sum, name: groupingOf(history).name(sum.line) }));
}

// What is allocated at EVENT, which is called active where a part of it is freed already.
export function allocatedSum(history, event) {
    const bytes = formatBytes(history.allocated[event]);
    return history.waiting(event)
        ? `${bytes} active, with ${waitingSum(history, event)}`
        : `${bytes} allocated`;
}

export function waitingSum(history, event) {
    return `${formatBytes(history.waiting(event))} that is freed and waits for a stream`;
}

// "peak 48.8 MiB", of what the timeline shows.
export function peakSum(history) {
    const { peak } = history;
    return `${peakName([history])} ${formatBytes(history.allocated[peak])}`;
}

export function peakName(histories) {
    return histories.some((history) => history.waiting(history.peak)) ? 'peak of active memory' : 'peak';
}

export function memorySums(history, event) {
    const reserved = history.hasReserved ? `, ${formatBytes(history.reserved[event])} reserved` : '';
    return `${allocatedSum(history, event)}${reserved}`;
}

export function liveSentence(history, event) {
    const live = history.liveBlocks(event).length;
    return `${plural(live, 'live block')} in ${plural(history.liveSegments(event).length, 'segment')}`;
}
