// How areas are filled: each colour has a pattern of its own, so that a picture can be read without colour. All that
// draws takes the patterns from the one table here: the raster on a canvas, the shader, the painters and the legend.

import { mixColours } from './theme.js';

export const PATTERN_SIZE = 8; // pixels after which a pattern repeats
export const INK_SHARE = 0.7; // of a colour is left where its pattern has ink
export const RESERVED = { kind: 1, colour: 0.25, ink: 0.9 }; // shares of the style sheet's colour, the rest is ground

// Whether a pattern has ink at a pixel, from the left and the top. There are as many as colours.
const INKED = [
    () => false, // plain
    (x, y) => ((x + y) & 7) === 0, // rising lines
    (x, y) => ((x - y) & 7) === 0, // falling lines
    (x, y) => ((x | y) & 2) === 0 && ((x ^ y) & 4) === 0, // dots
    (x, y) => y === 0, // horizontal lines
    (x) => x === 0, // vertical lines
    (x, y) => ((x + y) & 7) === 0 || ((x - y) & 7) === 0, // crosses
    (x, y) => ((x ^ y) & 4) === 0, // checks
    (x, y) => x === 0 || y === 0, // a grid
    (x, y) => ((x + y) & 7) < 4, // rising bands
    (x, y) => y < 4, // horizontal bands
    (x) => x < 4, // vertical bands
];
const ROWS = Uint8Array.from(INKED.flatMap(rowsOf)); // PATTERN_SIZE for each pattern; bit x: ink at x

function rowsOf(isInked) {
    const places = [...Array(PATTERN_SIZE).keys()];
    return places.map((y) => places.reduce((row, x) => row | (isInked(x, y) ? 1 << x : 0), 0));
}

export function hasInk(kind, x, y) {
    return ((ROWS[kind * PATTERN_SIZE + (y & 7)] >> (x & 7)) & 1) === 1;
}

// [[x, y, width]]: the ink of a pattern, row by row.
export function inkRuns(kind) {
    const runs = [];
    for (let y = 0; y < PATTERN_SIZE; y++) {
        for (let x = 0, end; x < PATTERN_SIZE; x = end + 1) {
            end = x;
            while (end < PATTERN_SIZE && hasInk(kind, end, y)) end++;
            if (end > x) runs.push([x, y, end - x]);
        }
    }
    return runs;
}

// The same as hasInk, for shaders: the upper four rows of a pattern are one number, the lower four another.
export function inkShader() {
    const words = new Uint32Array(ROWS.buffer);
    const kinds = INKED.map((_, kind) => `uvec2(${words[2 * kind]}u, ${words[2 * kind + 1]}u)`);
    return `const uvec2 INK[${kinds.length}] = uvec2[${kinds.length}](${kinds.join(', ')});
bool has_ink(int kind, ivec2 p) {
    uint rows = (p.y & 4) == 0 ? INK[kind].x : INK[kind].y;
    return ((rows >> uint((p.y & 3) * 8 + (p.x & 7))) & 1u) == 1u;
}`;
}

// What painters fill with: { colour, ink, kind of pattern }. DIM: how far blocks of colour INDEX go to the ground.
export function blockFill(colours, index, patterns, dim = 0) {
    const dimmed = (colour) => mixColours(colour, colours.ground, dim);
    const colour = colours.blocks[index];
    const ink = mixColours('#000000', colour, INK_SHARE);
    return { colour: dimmed(colour), ink: dimmed(ink), kind: patterns ? index : 0 };
}

export function reservedFill({ ground, cached }) {
    const { kind, colour, ink } = RESERVED;
    return { colour: mixColours(ground, cached, colour), ink: mixColours(ground, cached, ink), kind };
}
