// Where segments stand in the view "State": each is a bar on one common scale, broken into rows like a text, grouped by
// stream and pool.

const ROW = 24,
    GAP = 5,
    HEAD = 24,
    SPACE = 4; // pixels
const MOST_ROWS = 30,
    PIECES = 4; // blocks and gaps in a row, at least: one block on many rows looks like many blocks

// { height, rowBytes, groups: [{ y, stream, pool }], bars: [{ segment, start }] }; start: pixels along the group's rows.
export function layoutSegments(segments, width) {
    const total = segments.reduce((sum, segment) => sum + segment.size, 0);
    const pieces = segments.reduce((sum, segment) => sum + segment.pieces.length, 0);
    const rows = Math.min(Math.max(Math.floor(pieces / PIECES), 1), MOST_ROWS);
    const room = Math.max(width - segments.length * (SPACE + 1), width / 2);
    const least = Math.min(1 << 20, Math.max((total * width) / room, 1)); // a small case in one row
    const rowBytes = Math.max(least, 2 ** Math.ceil(Math.log2(Math.max(1, total / rows))));
    const perPixel = rowBytes / width;
    const layout = { rowBytes, perPixel, width, groups: [], bars: [], height: 0 };
    let group = null,
        along = 0;
    const close = () => {
        if (group) layout.height = group.y + HEAD + Math.ceil(along / width) * (ROW + GAP);
    };
    for (const segment of segments) {
        if (!group || group.stream !== segment.stream || group.pool !== segment.pool) {
            close();
            group = {
                y: layout.height,
                stream: segment.stream,
                pool: segment.pool,
                bytes: 0,
                used: 0,
                count: 0,
            };
            layout.groups.push(group);
            along = 0;
        }
        group.bytes += segment.size;
        group.used += segment.used;
        group.count++;
        layout.bars.push({ segment, group, start: along });
        along += Math.max(segment.size / perPixel, 2) + SPACE;
    }
    close();
    return layout;
}

// The rectangles of BYTES from OFFSET of a bar: one for each row it touches.
export function partsOf(layout, bar, offset, bytes) {
    const { width, perPixel } = layout;
    const parts = [];
    let from = bar.start + offset / perPixel;
    const to = from + Math.max(bytes / perPixel, 0.5);
    while (from < to - 1e-6) {
        const row = Math.floor(from / width + 1e-9);
        const end = Math.min(to, (row + 1) * width);
        parts.push({
            x: Math.max(0, from - row * width),
            y: bar.group.y + HEAD + row * (ROW + GAP),
            width: end - from,
            height: ROW,
        });
        from = end;
    }
    return parts;
}

// A block that shares memory with another is in the lower half, so that both are seen.
export function partsOfPiece(layout, bar, piece) {
    const parts = partsOf(layout, bar, piece.address - bar.segment.address, piece.size);
    return piece.shared ? parts.map((part) => ({ ...part, y: part.y + ROW / 2, height: ROW / 2 })) : parts;
}

// What lies at a point: { segment, piece } or null.
export function pieceAt(layout, x, y) {
    const group = layout.groups.findLast((one) => one.y + HEAD <= y);
    if (!group || x < 0 || x > layout.width) return null;
    const row = Math.floor((y - group.y - HEAD) / (ROW + GAP));
    const inRow = y - group.y - HEAD - row * (ROW + GAP);
    if (inRow > ROW) return null;
    const along = row * layout.width + x;
    const bar = layout.bars.find(
        (one) =>
            one.group === group &&
            one.start <= along &&
            along < one.start + Math.max(one.segment.size / layout.perPixel, 2),
    );
    if (!bar) return null;
    const address = bar.segment.address + (along - bar.start) * layout.perPixel;
    const pieces = bar.segment.pieces.filter(
        (one) => one.address <= address && address < one.address + one.size,
    );
    const piece = (inRow >= ROW / 2 && pieces.find((one) => one.shared)) || pieces[0];
    return piece ? { segment: bar.segment, piece } : null;
}
