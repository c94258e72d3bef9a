// Which colour a block has: its category, line, stream, pool or age. A colour never stands alone: each has a pattern
// (patterns.js), which the reader can switch on and pictures always have, and an entry in the legend, and large bands
// bear their names.

import { CLASS_FIRST } from './timeline_layout.js';
import { shortText } from './format.js';

// Colours that people with the common colour deficiencies can tell apart (after Okabe and Ito, and Tol), for light and
// for dark ground; the last is that of all the rest.
const LIGHT = [
    '#3a6ea5',
    '#d98a2b',
    '#4d9a6a',
    '#b65a86',
    '#7fb3d5',
    '#8a6d3b',
    '#6a5ea8',
    '#c9b037',
    '#c4574a',
    '#5aa9a3',
    '#9c9f4a',
    '#8f959c',
];
const DARK = [
    '#5b8fc9',
    '#e0a04f',
    '#62b384',
    '#cf7ba5',
    '#93c4e4',
    '#b08f58',
    '#8f83d1',
    '#d9c45a',
    '#dd786b',
    '#72c3bc',
    '#b9bc69',
    '#767d86',
];
export const PALETTE_SIZE = LIGHT.length;
const OTHERS = PALETTE_SIZE - 1;

export const COLOURINGS = [
    ['category', 'Category'],
    ['line', 'Line'],
    ['stream', 'Stream'],
    ['pool', 'Pool'],
    ['age', 'Age (events lived)'],
];

export function palette(dark) {
    return dark ? DARK : LIGHT;
}

// The blocks' keys under a colouring and the names of the keys.
function keysOf(history, colouring) {
    const named = (names, word) => (key) => names?.[key] ?? `${word} ${key}`;
    switch (colouring) {
        case 'line':
            return { keys: history.ofBlocks('line'), name: (key) => history.lineName(key - 1) };
        case 'stream':
            return { keys: history.ofBlocks('stream'), name: named(history.info.streams, 'stream') };
        case 'pool':
            return { keys: history.ofBlocks('pool'), name: named(history.info.pools, 'pool') };
        case 'age':
            return ageKeys(history);
        default:
            return { keys: history.ofBlocks('category'), name: named(history.info.categories, 'category') };
    }
}

const AGES = [2, 8, 64, 512, 4096, 32768, 262144];

function ageKeys(history) {
    const keys = new Uint8Array(history.blocks);
    for (let i = 0; i < keys.length; i++) {
        const lived = history.blockEnd[i] - history.blockAlloc[i];
        let age = 0;
        while (age < AGES.length && lived > AGES[age]) age++;
        keys[i] = history.blockEnd[i] > history.last ? AGES.length + 1 : age;
    }
    const names = AGES.map((age) => `up to ${age} events`).concat(
        `over ${AGES.at(-1)} events`,
        'lives to the end',
    );
    return { keys, name: (key) => names[key], ordered: true };
}

// Byte-events of each key decide who gets a colour of its own: what fills the picture most comes first.
// Keys are small numbers: a plain array is ten times as fast as a map.
function weights(history, keys) {
    const { blockSize, blockAlloc, blockEnd } = history;
    const sums = new Float64Array(keys.reduce((most, key) => Math.max(most, key), 0) + 1).fill(-1);
    for (let i = 0; i < keys.length; i++) {
        const area = blockSize[i] * (blockEnd[i] - blockAlloc[i]);
        sums[keys[i]] = Math.max(sums[keys[i]], 0) + area;
    }
    const weight = new Map();
    sums.forEach((sum, key) => sum >= 0 && weight.set(key, sum));
    return weight;
}

// The colours of KEYS: those that LEGEND names keep theirs, so that two histories can be compared.
function chooseColours(keys, name, legend) {
    const known = new Map(
        (legend ?? []).filter((entry) => entry.index !== OTHERS).map((entry) => [entry.name, entry.index]),
    );
    const index = new Map();
    for (const key of keys) if (known.has(name(key))) index.set(key, known.get(name(key)));
    const taken = new Set([...known.values(), OTHERS]);
    const free = Array.from({ length: PALETTE_SIZE }, (_, i) => i).filter((i) => !taken.has(i));
    for (const key of keys) if (!index.has(key) && free.length) index.set(key, free.shift());
    return index;
}

// Views share them: they cost a walk over all blocks.
export function coloursOf(history, colouring) {
    history.colours ??= new Map();
    if (!history.colours.has(colouring)) history.colours.set(colouring, colourBlocks(history, colouring));
    return history.colours.get(colouring);
}

// { classes: one for each block, legend: [{ index, name }] }; LEGEND is that of another history or null.
export function colourBlocks(history, colouring, legend) {
    const { keys, name, ordered } = keysOf(history, colouring);
    const weight = weights(history, keys);
    const ranked = [...weight.keys()].sort(
        ordered ? (a, b) => a - b : (a, b) => weight.get(b) - weight.get(a) || a - b,
    );
    const shown = (key) => shortText(name(key), 120);
    const index = chooseColours(ranked, shown, legend);
    const highest = ranked.reduce((most, key) => Math.max(most, key), 0);
    const classOf = new Uint8Array(highest + 1).fill(CLASS_FIRST + OTHERS);
    for (const [key, at] of index) classOf[key] = CLASS_FIRST + at;
    const classes = new Uint8Array(keys.length);
    for (let i = 0; i < classes.length; i++) classes[i] = classOf[keys[i]];
    const entries = [...index].map(([key, at]) => ({ index: at, name: shown(key) }));
    const rest = ranked.filter((key) => !index.has(key));
    if (rest.length)
        entries.push({ index: OTHERS, name: rest.length === 1 ? shown(rest[0]) : `${rest.length} others` });
    return { classes, legend: entries };
}

// What a colour stands for, for one block.
export function nameOfClass(colours, block) {
    const index = colours.classes[block] - CLASS_FIRST;
    return colours.legend.find((entry) => entry.index === index)?.name ?? '';
}
