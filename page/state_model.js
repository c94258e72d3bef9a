// The allocator at one event: the segments with their live blocks and the gaps between them.

const EXPANDABLE = 2;

// [{ index, address, size, stream, pool, kind, pieces: [{ address, size, block or null, shared, covered }], used,
// shared }], by stream, pool and address; a piece without a block is free. Shared: bytes that a block has together with
// those before it, which are then covered; no allocator may do that.
export function segmentsAt(history, event) {
    const address = history.ofSegments('address');
    const columns = ['stream', 'pool', 'kind'].map((name) => history.ofSegments(name));
    const recorded = history
        .liveSegments(event)
        .sort((a, b) => address[a] - address[b])
        .map((index) => {
            const [stream, pool, kind] = columns.map((column) => column[index]);
            return {
                index,
                address: address[index],
                size: history.segmentSize[index],
                stream,
                pool,
                kind,
                pieces: [],
                used: 0,
                shared: 0,
            };
        });
    const segments = joinRanges(recorded);
    placeBlocks(history, segments, event);
    for (const segment of segments) addGaps(segment);
    return segments.sort((a, b) => a.stream - b.stream || a.pool - b.pool || a.address - b.address);
}

// An expandable segment is recorded as the ranges that were mapped one after the other; blocks lie across them.
function joinRanges(segments) {
    const joined = [];
    for (const segment of segments) {
        const before = joined.at(-1);
        if (
            before &&
            before.kind === EXPANDABLE &&
            segment.kind === EXPANDABLE &&
            before.stream === segment.stream &&
            before.address + before.size === segment.address
        )
            before.size += segment.size;
        else joined.push(segment);
    }
    return joined;
}

function placeBlocks(history, segments, event) {
    const address = history.ofBlocks('address');
    const blocks = [...history.liveBlocks(event)].sort((a, b) => address[a] - address[b]);
    let at = 0;
    for (const block of blocks) {
        while (at < segments.length && segments[at].address + segments[at].size <= address[block]) at++;
        const segment = segments[at];
        if (!segment || address[block] < segment.address) continue; // the recording does not know its segment
        segment.pieces.push({ address: address[block], size: history.blockSize[block], block, shared: 0 });
    }
    for (const segment of segments) countUsed(segment);
}

function countUsed(segment) {
    let end = segment.address,
        last = null;
    for (const piece of segment.pieces) {
        piece.shared = Math.min(Math.max(end - piece.address, 0), piece.size);
        segment.used += piece.size - piece.shared;
        segment.shared += piece.shared;
        if (piece.shared) last.covered = true;
        if (piece.address + piece.size > end) last = piece;
        end = Math.max(end, piece.address + piece.size);
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
    return segments.flatMap((segment) =>
        segment.pieces.filter((piece) => piece.block === null).map((piece) => ({ ...piece, segment })),
    );
}
