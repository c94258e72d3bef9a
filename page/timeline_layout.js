// The active memory timeline as a raster, column for column: which class (colour) stands at which height.
//
// At each moment the live blocks are stacked in order of allocation, so that the upper edge is what is allocated. A
// million blocks have more corners than any screen has pixels, and a software renderer draws a million rectangles in
// ten seconds. So the raster is computed at the resolution of the screen: a column stands for the moment of its events
// at which most was allocated (no peak is lost), and a row for the block that covers its centre. The work is the live
// blocks of each column, however many events there are. It is a generator, so that a caller can keep its frames short.

export const CLASS_EMPTY = 0;
export const CLASS_CACHED = 1; // reserved from the device, but held by no block
export const CLASS_FIRST = 2; // the first colour of blocks
export const EDGE = 64; // added: the border of a block
export const HIGHLIGHT = 128; // added: the block is among those asked for

const MIN_EDGE_ROWS = 4; // a lower band has no border, it would be all border
const MIN_EDGE_COLUMNS = 5; // likewise a shorter one

// VIEW: { from, to: events; bottom, top: bytes; columns, rows }; CLASSES: the class of each block, HIGHLIGHT added.
export class TimelineRaster {
    constructor(view) {
        Object.assign(this, view);
        this.moments = new Uint32Array(view.columns);
        this.pixels = new Uint8Array(view.columns * view.rows); // column for column, from the bottom
        this.done = 0; // columns that are ready
    }

    columnOf(event) {
        const column = Math.floor(((event - this.from) / (this.to - this.from)) * this.columns);
        return Math.min(Math.max(column, 0), this.columns - 1);
    }
}

// The moment of each column: that of its highest allocation; where columns are denser than events, the event it is in.
function chooseMoments(raster, history) {
    const { from, to, columns, moments } = raster;
    const step = (to - from) / columns;
    for (let c = 0; c < columns; c++) {
        const first = clampEvent(history, Math.floor(from + c * step));
        const last = clampEvent(history, Math.max(first, Math.ceil(from + (c + 1) * step) - 1));
        let best = first;
        for (let e = first + 1; e <= last; e++) if (history.allocated[e] > history.allocated[best]) best = e;
        moments[c] = best;
    }
}

function clampEvent(history, event) {
    return Math.min(Math.max(event, 0), history.last);
}

// Keeps in LIVE those alive at MOMENT and adds those allocated since; returns how many there are.
function advance(live, count, history, from, to, moment) {
    const { blockEnd } = history;
    let kept = 0;
    for (let i = 0; i < count; i++) if (blockEnd[live[i]] > moment) live[kept++] = live[i];
    for (let block = from; block < to; block++) if (blockEnd[block] > moment) live[kept++] = block;
    return kept;
}

// Stacks the live blocks in one column; returns the row that is reached.
function stackColumn(raster, history, live, count, classes, column) {
    const { rows, bottom, top, pixels } = raster;
    const { blockSize, blockAlloc, blockEnd } = history;
    const scale = rows / (top - bottom);
    const before = column > 0 ? raster.moments[column - 1] : -1;
    const long = (MIN_EDGE_COLUMNS * (raster.to - raster.from)) / raster.columns;
    const base = column * rows;
    let height = -bottom * scale;
    let row = 0;
    for (let i = 0; i < count && row < rows; i++) {
        const block = live[i];
        height += blockSize[block] * scale;
        let next = Math.min(Math.floor(height + 0.5), rows);
        const value = classes[block];
        // A highlighted block is never lost, unless others have taken its row already: heights stay true to a row.
        if (value >= HIGHLIGHT && next <= row && row <= height) next = row + 1;
        if (next <= row) continue;
        pixels.fill(value, base + row, base + next);
        if (next - row >= MIN_EDGE_ROWS) {
            const starts = blockAlloc[block] > before && blockEnd[block] - blockAlloc[block] > long;
            pixels.fill(value | EDGE, base + (starts ? row : next - 1), base + next);
        }
        row = next;
    }
    return row;
}

// Computes RASTER; yields after each column.
export function* layoutTimeline(raster, history, classes) {
    const { rows, bottom, top, pixels, moments, columns } = raster;
    chooseMoments(raster, history);
    const live = [...history.liveBlocks(moments[0])];
    let count = live.length;
    let next = history.allocatedUpTo(moments[0]);
    for (let c = 0; c < columns; c++) {
        if (c > 0 && moments[c] !== moments[c - 1]) {
            const until = allocatedUntil(history, next, moments[c]);
            count = advance(live, count, history, next, until, moments[c]);
            next = until;
        }
        const row = stackColumn(raster, history, live, count, classes, c);
        const cached = Math.floor(((history.reserved[moments[c]] - bottom) / (top - bottom)) * rows + 0.5);
        if (cached > row) pixels.fill(CLASS_CACHED, c * rows + row, c * rows + Math.min(cached, rows));
        raster.done = c + 1;
        yield;
    }
}

function allocatedUntil(history, from, moment) {
    const { blockAlloc, blocks } = history;
    let next = from;
    while (next < blocks && blockAlloc[next] <= moment) next++;
    return next;
}

// The block at BYTES above the ground at EVENT with where it lies, or null.
export function blockAt(history, event, bytes) {
    let height = 0;
    for (const block of history.liveBlocks(event)) {
        const next = height + history.blockSize[block];
        if (bytes < next) return bytes < height ? null : { block, bottom: height, top: next };
        height = next;
    }
    return null;
}

// Where BLOCK lies in the columns of RASTER that show it: [{ column, end, bottom }], columns with one height together. Those
// below it only become fewer: what is allocated later lies above.
export function areaOfBlock(history, block, raster) {
    const { blockAlloc, blockEnd, blockSize } = history;
    const below = [...history.liveBlocks(blockAlloc[block])].filter((other) => other < block);
    below.sort((a, b) => blockEnd[a] - blockEnd[b]);
    let bottom = below.reduce((sum, other) => sum + blockSize[other], 0);
    const steps = [];
    let gone = 0;
    for (let c = 0; c < raster.columns; c++) {
        const moment = raster.moments[c];
        if (moment < blockAlloc[block] || moment >= blockEnd[block]) continue;
        while (gone < below.length && blockEnd[below[gone]] <= moment) bottom -= blockSize[below[gone++]];
        const last = steps.at(-1);
        if (last?.bottom === bottom && last.end === c) last.end = c + 1;
        else steps.push({ column: c, end: c + 1, bottom });
    }
    const alloc = blockAlloc[block];
    if (!steps.length && alloc >= raster.from && alloc < raster.to) {
        const column = raster.columnOf(alloc); // it lives between the moments of two columns
        steps.push({ column, end: column + 1, bottom });
    }
    return steps;
}

// The raster as rectangles { column, columns, row, rows, value }, equal neighbours merged: for SVG and for printing.
export function rectanglesOf(raster) {
    const done = [];
    let open = new Map();
    for (let c = 0; c < raster.columns; c++) {
        const still = new Map();
        const base = c * raster.rows;
        for (let row = 0; row < raster.rows;) {
            const value = raster.pixels[base + row] & ~EDGE;
            let end = row + 1;
            while (end < raster.rows && (raster.pixels[base + end] & ~EDGE) === value) end++;
            const key = row * 65536 + end;
            const left = open.get(key);
            if (value !== CLASS_EMPTY) {
                if (left && left.value === value) still.set(key, left);
                else still.set(key, { column: c, columns: 0, row, rows: end - row, value });
                still.get(key).columns++;
            }
            row = end;
        }
        for (const [key, rectangle] of open) if (still.get(key) !== rectangle) done.push(rectangle);
        open = still;
    }
    done.push(...open.values());
    return done;
}
