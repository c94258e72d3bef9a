// Which moment of a history corresponds to one of another: after the same request of the same workload, in the same
// iteration, or in the same phase.

import { formatCount, shortText } from './format.js';
import { indexOfMaximum } from './history.js';
import { peakName } from './line_sums.js';

const REQUESTS = [0, 1, 7]; // kinds of events: allocation, free asked for, out of memory

export function mostReserved(history) {
    return indexOfMaximum(history.reserved, 0, history.last);
}

// For each event, how many requests were made up to it.
function requestCounts(history) {
    if (!history.requestCounts) {
        const kinds = history.ofEvents('kind');
        const counts = new Uint32Array(history.events);
        for (let event = 1; event < counts.length; event++)
            counts[event] = counts[event - 1] + (REQUESTS.includes(kinds[event]) ? 1 : 0);
        history.requestCounts = counts;
    }
    return history.requestCounts;
}

// The first event from FROM on, and before TO, at which COUNT requests were made; else the last of them.
function eventOfCount(history, count, [from, to]) {
    const counts = requestCounts(history);
    let low = from,
        high = to - 1;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (counts[middle] >= count) high = middle;
        else low = middle + 1;
    }
    return low;
}

// Whether both made the same requests, under whatever settings.
function isSameWorkload(one, other) {
    one.sameWorkload ??= new Map();
    if (!one.sameWorkload.has(other)) one.sameWorkload.set(other, madeTheSame(one, other));
    return one.sameWorkload.get(other);
}

function madeTheSame(one, other) {
    if (one.blocks !== other.blocks) return false;
    if (requestCounts(one).at(-1) !== requestCounts(other).at(-1)) return false;
    const [a, b] = [one, other].map((history) => history.ofBlocks('requested'));
    return a.every((bytes, block) => bytes === b[block]);
}

// [{ name, range: [from, to] }]: from each of STARTS, [{ event, name }] in order, to the next or the end.
function stretchesFrom(history, starts) {
    return starts.map(({ event, name }, i) => ({
        name,
        range: [event, starts[i + 1]?.event ?? history.events],
    }));
}

// The iterations, [{ event, name }]: as the recording's annotations call them, or by number.
export function iterationsOf(history) {
    const { iterations, marks } = history.info;
    const called = new Map(
        (marks ?? []).filter(({ kind }) => kind === 'annotation').map(({ event, label }) => [event, label]),
    );
    return (iterations ?? []).map((event, i) => ({ event, name: called.get(event) ?? `iteration ${i + 1}` }));
}

function phasesOf({ info }) {
    const known = (info.marks ?? []).filter(({ kind }) => kind === 'phase' || kind === 'annotation');
    return known.map(({ event, label }) => ({ event, name: label ?? '' })).sort((a, b) => a.event - b.event);
}

// In the stretch of OTHER that is called like that of ONE around EVENT, after as many requests; or null.
function inSameStretch(one, event, other, list) {
    const inside = stretchesFrom(one, list(one)).findLast(({ range }) => range[0] <= event);
    if (!inside || event >= inside.range[1]) return null;
    const same = stretchesFrom(other, list(other)).find(({ name }) => name === inside.name);
    if (!same) return null;
    const made = requestCounts(one)[event] - requestCounts(one)[inside.range[0]];
    const count = requestCounts(other)[same.range[0]] + made;
    return { event: eventOfCount(other, count, same.range), name: inside.name };
}

// { event, how }: the moment of OTHER that corresponds to EVENT of ONE, and what they have in common; or null.
export function counterpart(one, event, other) {
    if (isSameWorkload(one, other)) {
        const count = requestCounts(one)[event];
        return {
            event: eventOfCount(other, count, [0, other.events]),
            how: `both after request ${formatCount(count)} of the same ${formatCount(requestCounts(one).at(-1))}`,
        };
    }
    const same = inSameStretch(one, event, other, iterationsOf) ?? inSameStretch(one, event, other, phasesOf);
    return same && { event: same.event, how: `both in ${shortText(same.name, 60)}, after as many requests` };
}

// What EVENT of ONE and OTHEREVENT of OTHER have in common, in words.
export function commonMoment(one, event, other, otherEvent) {
    const found = counterpart(one, event, other);
    if (found?.event === otherEvent) return found.how;
    if (event === one.peak && otherEvent === other.peak) return `each at its own ${peakName([one, other])}`;
    return 'these moments do not correspond to each other';
}
