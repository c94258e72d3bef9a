// The allocator at one event: the segments with their live blocks and the gaps between them.

// [{ index, address, size, stream, pool, kind, pieces: [{ address, size, block or null }], used }], by stream, pool and
// address; a piece without a block is free.
export function segmentsAt(history, event) {
    const address = history.optional('s.address', history.segments);
    const segments = history.liveSegments(event).map((index) => ({ index, address: address[index],
        size: history.segmentSize[index], stream: history.optional('s.stream', history.segments)[index],
        pool: history.optional('s.pool', history.segments)[index], kind: history.optional('s.kind', history.segments)[index],
        pieces: [], used: 0 }));
    segments.sort((a, b) => a.address - b.address);
    placeBlocks(history, segments, event);
    for (const segment of segments) addGaps(segment);
    return segments.sort((a, b) => a.stream - b.stream || a.pool - b.pool || a.address - b.address);
}

function placeBlocks(history, segments, event) {
    const address = history.ofBlocks('address');
    const blocks = history.liveBlocks(event).sort((a, b) => address[a] - address[b]);
    let at = 0;
    for (const block of blocks) {
        while (at < segments.length && segments[at].address + segments[at].size <= address[block]) at++;
        const segment = segments[at];
        if (!segment || address[block] < segment.address) continue; // the recording does not know its segment
        segment.pieces.push({ address: address[block], size: history.blockSize[block], block });
        segment.used += history.blockSize[block];
    }
}

function addGaps(segment) {
    const pieces = [];
    let at = segment.address;
    for (const piece of segment.pieces) {
        if (piece.address > at) pieces.push({ address: at, size: piece.address - at, block: null });
        pieces.push(piece);
        at = Math.max(at, piece.address + piece.size);
    }
    const end = segment.address + segment.size;
    if (at < end) pieces.push({ address: at, size: end - at, block: null });
    segment.pieces = pieces;
}

export function gapsOf(segments) {
    return segments.flatMap((segment) => segment.pieces.filter((piece) => piece.block === null)
        .map((piece) => ({ ...piece, segment })));
}
