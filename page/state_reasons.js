// Sentences about an event and the state it led to: why a block lies where it does, why a segment cannot go back, why
// memory ran out. They follow from the recorded state alone.

import { formatBytes, formatCount, plural, shortText } from './format.js';
import { gapsOf, segmentsAt } from './state_model.js';

const KINDS = [
    'allocation',
    'free requested',
    'free completed',
    'segment taken from the device',
    'segment given back',
    'memory mapped',
    'memory unmapped',
    'out of memory',
    'other event',
];

const TAKES_SEGMENT = [3, 5];

const OUTCOMES = {
    survived: 'The job went on.',
    lost: 'The recording does not tell whether the job went on.',
    ended: 'The job ended with it.',
};

export function eventSentence(history, event) {
    if (event === 0) return 'The state before the first event.';
    const kind = history.ofEvents('kind')[event];
    const block = history.ofEvents('block')[event] - 1;
    const segment = history.ofEvents('segment')[event] - 1;
    const what =
        block >= 0
            ? ` of block ${formatCount(block)}, ${formatBytes(history.blockSize[block])}, ${shortText(history.lineOf(block), 100)}`
            : segment >= 0
              ? `, ${formatBytes(history.segmentSize[segment])}`
              : '';
    return `Event ${formatCount(history.numberOf(event))}${requestOf(history, event)}: ${KINDS[kind] ?? 'event'}${what}.`;
}

// Texts of gmd count the requests of a run.
function requestOf(history, event) {
    const isKnown = history.columns.has(`${history.prefix}e.request`);
    return isKnown ? ` (request ${formatCount(history.ofEvents('request')[event])})` : '';
}

// Why the block that EVENT allocated lies where it lies, from the state before it.
export function choiceSentences(history, event) {
    const kind = event && history.ofEvents('kind')[event];
    if (TAKES_SEGMENT.includes(kind)) return segmentReasons(history, event);
    if (event === 0 || kind !== 0) return [];
    const block = history.ofEvents('block')[event] - 1;
    if (block < 0) return [];
    const size = history.blockSize[block],
        address = history.ofBlocks('address')[block];
    const gaps = gapsFor(history, block, event - 1);
    const chosen = gaps.find((gap) => gap.address <= address && address < gap.address + gap.size);
    const fitting = gaps.filter((gap) => gap.size >= size);
    if (!chosen) return [elsewhereSentence(history, block, event - 1) ?? noGapSentence(gaps, size)];
    const smaller = fitting.filter((gap) => gap.size < chosen.size).length;
    const rest = chosen.size - size;
    const choice =
        smaller > 0
            ? `${plural(smaller, 'smaller gap')} of its stream and pool would also have been large enough`
            : fitting.length === 1
              ? 'no other of its stream and pool was large enough'
              : `it is the smallest of ${formatCount(fitting.length)} of its stream and pool that were large enough`;
    return [
        `The block lies in a free gap of ${formatBytes(chosen.size)}: ${choice}.`,
        rest ? `${formatBytes(rest)} of the gap remain free.` : 'The gap is used up.',
    ];
}

// Where the memory of BLOCK was free at EVENT in a segment of another stream or pool, which it may not be taken from
// before that stream's work is done.
function elsewhereSentence(history, block, event) {
    const address = history.ofBlocks('address')[block];
    const gap = gapsOf(segmentsAt(history, event)).find(
        (one) => one.address <= address && address < one.address + one.size,
    );
    if (!gap) return null;
    const { stream, pool } = gap.segment;
    const names = [
        history.info.streams?.[stream] ?? `stream ${stream}`,
        `${history.info.pools?.[pool] ?? pool} pool`,
    ];
    return (
        `The block lies in a free gap of ${formatBytes(gap.size)} of ${names.map((name) => shortText(name, 40)).join(', ')}: ` +
        `the block itself is of ${shortText(history.info.streams?.[history.ofBlocks('stream')[block]] ?? '', 40)}.` +
        ownerSentence(history, address, event)
    );
}

// Who had ADDRESS until EVENT.
function ownerSentence(history, address, event) {
    const start = history.ofBlocks('address');
    for (let block = history.allocatedUpTo(event) - 1; block >= 0; block--)
        if (start[block] <= address && address < start[block] + history.blockSize[block])
            return (
                ` Until ${history.eventName(history.blockEnd[block])} block ${formatCount(block)} of ` +
                `${shortText(history.lineOf(block), 100)} lay there.`
            );
    return '';
}

// Why the allocator took memory from the device: the block that the next event allocates found no gap.
function segmentReasons(history, event) {
    const block = history.ofEvents('block')[event + 1] - 1;
    if (history.ofEvents('kind')[event + 1] !== 0 || !(block >= 0)) return [];
    const gaps = gapsFor(history, block, event - 1),
        size = history.blockSize[block];
    return gaps.every((gap) => gap.size < size) ? [noGapSentence(gaps, size)] : [];
}

// The free gaps at EVENT of the stream and the pool of BLOCK.
function gapsFor(history, block, event) {
    const stream = history.ofBlocks('stream')[block],
        pool = history.ofBlocks('pool')[block];
    return gapsOf(segmentsAt(history, event)).filter(
        ({ segment }) => segment.stream === stream && segment.pool === pool,
    );
}

function noGapSentence(gaps, size) {
    const largest = Math.max(0, ...gaps.map((gap) => gap.size));
    const free = gaps.reduce((sum, gap) => sum + gap.size, 0);
    return largest >= size
        ? 'The block lies in memory that the recording does not show as free before.'
        : `No free gap of its stream and pool held ${formatBytes(size)}: ${formatBytes(free)} were free there, the largest gap was ${formatBytes(largest)}.`;
}

export function segmentSentences(history, segment, event) {
    const live = segment.pieces.filter((piece) => piece.block !== null);
    const gaps = segment.pieces.filter((piece) => piece.block === null);
    const split = `${formatBytes(segment.size)} in ${plural(live.length, 'live block')} and ${plural(gaps.length, 'free gap')}`;
    if (!live.length) return [`${split}. All of it is free: the allocator could give it back to the device.`];
    const largest = live.reduce((best, piece) => (piece.size > best.size ? piece : best));
    const waiting = live.filter(({ block }) => isPending(history, block, event)).length;
    const sentences = [
        `${split}.`,
        `It cannot go back to the device while ${plural(live.length, 'block')} with ${formatBytes(segment.used)} ` +
            `${live.length === 1 ? 'lives' : 'live'} in it; the largest, ${formatBytes(largest.size)}, is of ${shortText(history.lineOf(largest.block), 100)}.`,
    ];
    if (segment.kind === 2)
        sentences[1] = `${sentences[1].slice(0, -1)}; an expandable segment can give back the pages that no block touches.`;
    if (waiting)
        sentences.push(
            `${plural(waiting, 'block')} in it ${waiting === 1 ? 'waits' : 'wait'} for another stream before the free completes.`,
        );
    return sentences;
}

// Asked to be freed, but a stream may still use it.
export function isPending(history, block, event) {
    const asked = history.askedToFree(block);
    return asked > 0 && asked <= event && history.blockEnd[block] > event;
}

// How what is reserved and not allocated lies at EVENT.
export function freeSentence(history, event) {
    const segments = segmentsAt(history, event);
    const empty = segments.filter(({ used }) => used === 0);
    const gaps = gapsOf(segments.filter(({ used }) => used > 0));
    const bytes = (list) => formatBytes(list.reduce((sum, { size }) => sum + size, 0));
    return (
        `Free: ${bytes(empty)} in ${plural(empty.length, 'segment')} without a block, ` +
        `${bytes(gaps)} in ${plural(gaps.length, 'gap')} between blocks.`
    );
}

// The out-of-memory at EVENT as the history lists it, or null.
export function refusalAt(history, event) {
    return history.refusals().find((refusal) => refusal.event === event) ?? null;
}

export function refusalSentences(history, { event, bytes, oom }) {
    const gaps = gapsOf(segmentsAt(history, event));
    const free = gaps.reduce((sum, gap) => sum + gap.size, 0),
        largest = gaps.reduce((most, gap) => Math.max(most, gap.size), 0);
    const isFirst = oom?.event === event;
    return [
        `Out of memory at ${history.eventName(event)}: ${formatBytes(bytes)} were refused${isFirst ? moreSentence(oom) : '.'}`,
        history.hasReserved &&
            `The allocator held ${formatBytes(free)} in ${plural(gaps.length, 'free gap')}, the largest of ${formatBytes(largest)}.`,
        !isFirst && firstSentence(history, oom),
        oom?.cause &&
            `Cause: ${shortText(oom.cause, 300)}${oom.reason ? `: ${shortText(oom.reason, 300)}` : ''}.`,
        OUTCOMES[oom?.outcome],
        isFirst && deviceSentence(oom),
        ...(isFirst ? cachedSentences(oom) : []),
        oom?.text && `What would have been enough: ${shortText(oom.text, 2000)}.`,
    ].filter(Boolean);
}

function moreSentence({ repeats }) {
    return repeats > 0 ? `, and ${formatCount(repeats)} more like it later.` : '.';
}

function firstSentence(history, oom) {
    return oom
        ? `The first of the same line and size was at ${history.eventName(oom.event)}; what follows is known of that one.`
        : 'Its cause is not known: there were too many to look at each.';
}

function deviceSentence({ device_free: onDevice, free }) {
    const bytes = onDevice ?? free;
    return Number.isFinite(bytes) && `The device had ${formatBytes(bytes)} free.`;
}

function cachedSentences({ cached }) {
    return (cached ?? []).map(
        ({ cause, bytes }) => `Free in the cache, ${formatBytes(bytes)}: ${shortText(cause, 300)}.`,
    );
}
