// Finds blocks by what a reader types: an address, a size ("20 MiB", ">= 1 GiB") or a part of a frame, line, category,
// stream or pool.

const FACTORS = {
    b: 1,
    k: 1024,
    kib: 1024,
    kb: 1024,
    m: 2 ** 20,
    mib: 2 ** 20,
    mb: 2 ** 20,
    g: 2 ** 30,
    gib: 2 ** 30,
    gb: 2 ** 30,
    t: 2 ** 40,
    tib: 2 ** 40,
    tb: 2 ** 40,
};

// The block that covers an address, at any time of its life.
function matchAddress(history, query) {
    if (!/^0x[0-9a-f]{1,16}$/i.test(query)) return null;
    const address = Number(BigInt(query) - BigInt(history.info.address_base ?? 0));
    const start = history.ofBlocks('address');
    return (block) => start[block] <= address && address < start[block] + history.blockSize[block];
}

function matchSize(history, query) {
    const match = /^(>=|<=|>|<|=)?\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b|[kmgt])?$/i.exec(query);
    if (!match || (!match[1] && !match[3] && match[2].length < 3)) return null;
    const factor = FACTORS[(match[3] ?? 'b').toLowerCase()];
    const bytes = Number(match[2]) * factor;
    const size = history.blockSize,
        asked = history.ofBlocks('requested');
    const exact = (block) => size[block] === bytes || asked[block] === bytes;
    // A size that is written with a point or a unit is rounded: "1.50 GiB" means what the page shows as that.
    const near =
        factor > 1 ? 0.005 * 10 ** Math.max(0, String(Math.floor(Number(match[2]))).length - 1) * factor : 0;
    switch (match[1]) {
        case '>':
            return (block) => size[block] > bytes;
        case '>=':
            return (block) => size[block] >= bytes;
        case '<':
            return (block) => size[block] < bytes;
        case '<=':
            return (block) => size[block] <= bytes;
        default:
            return (block) => exact(block) || Math.abs(size[block] - bytes) <= near;
    }
}

// The stacks of which a frame contains NEEDLE: a child has the frames of its parent.
function matchingStacks(history, needle) {
    const tree = history.stackTree();
    const contains = new Uint8Array(tree.file.length);
    for (let f = 0; f < contains.length; f++) {
        const text = `${tree.strings[tree.file[f]]}:${tree.line[f]} ${tree.strings[tree.name[f]]}`;
        contains[f] = text.toLowerCase().includes(needle) ? 1 : 0;
    }
    const known = new Int8Array(tree.parent.length).fill(-1);
    for (let stack = 0; stack < known.length; stack++) {
        const path = [];
        let at = stack;
        while (at >= 0 && known[at] < 0 && !contains[tree.frame[at]]) {
            path.push(at);
            known[at] = 0; // also ends a loop in damaged data
            at = tree.parent[at] - 1;
        }
        const found = at >= 0 && (known[at] > 0 || contains[tree.frame[at]]) ? 1 : 0;
        if (at >= 0 && found) known[at] = 1;
        for (const one of path) known[one] = found;
    }
    return known;
}

function matchText(history, query) {
    const needle = query.toLowerCase();
    const stacks = matchingStacks(history, needle);
    const names = (list) =>
        new Set((list ?? []).map((name, i) => (name.toLowerCase().includes(needle) ? i : -1)));
    const category = names(history.info.categories),
        stream = names(history.info.streams),
        pool = names(history.info.pools);
    const lines = new Map();
    const inLine = (line) => {
        if (!lines.has(line))
            lines.set(
                line,
                line > 0 &&
                    history
                        .lineName(line - 1)
                        .toLowerCase()
                        .includes(needle),
            );
        return lines.get(line);
    };
    const [stackOf, lineOf] = [history.ofBlocks('stack'), history.ofBlocks('line')];
    const [categoryOf, streamOf, poolOf] = ['category', 'stream', 'pool'].map((name) =>
        history.ofBlocks(name),
    );
    return (block) =>
        (stackOf[block] > 0 && stacks[stackOf[block] - 1] > 0) ||
        inLine(lineOf[block]) ||
        category.has(categoryOf[block]) ||
        stream.has(streamOf[block]) ||
        pool.has(poolOf[block]);
}

// { mask: 1 for each block found, count, bytes }
export function findBlocks(history, query) {
    const trimmed = query.trim();
    const match =
        matchAddress(history, trimmed) ?? matchSize(history, trimmed) ?? matchText(history, trimmed);
    return maskOf(history, match);
}

export function maskOf(history, match) {
    const mask = new Uint8Array(history.blocks);
    let count = 0,
        bytes = 0;
    for (let block = 0; block < mask.length; block++) {
        if (!match(block)) continue;
        mask[block] = 1;
        count++;
        bytes += history.blockSize[block];
    }
    return { mask, count, bytes };
}

// What the state asks to be highlighted, or null: the search first, then the blocks that a finding names, which are
// fewer than those of its line, then a line or a stack.
export function highlightOf(history, state, report) {
    if (state.query) return { ...findBlocks(history, state.query), label: `"${state.query}"` };
    const evidence = report.findings[state.finding]?.evidence?.[state.evidence ?? 0];
    if (evidence && isFollowed(evidence, state) && (evidence.history ?? 0) === history.index) {
        const wanted = new Set(evidence.blocks);
        return { ...maskOf(history, (block) => wanted.has(block)), label: 'the finding' };
    }
    if (state.line) return { ...blocksOfLine(history, state.line), label: state.line };
    if (state.stack !== null && state.stack !== undefined) {
        const stacks = history.ofBlocks('stack');
        return {
            ...maskOf(history, (block) => isBelow(history, stacks[block] - 1, state.stack)),
            label: 'this stack',
        };
    }
    return null;
}

// Whether EVIDENCE names blocks and no other line or stack was chosen since.
function isFollowed(evidence, { line, stack }) {
    return (
        evidence.blocks?.length > 0 &&
        (line ?? null) === (evidence.line ?? null) &&
        (stack ?? null) === (evidence.stack ?? null)
    );
}

function blocksOfLine(history, name) {
    const lines = history.ofBlocks('line');
    const same = new Map();
    return maskOf(history, (block) => {
        if (!same.has(lines[block]))
            same.set(lines[block], sameLine(history.lineName(lines[block] - 1), name));
        return same.get(lines[block]);
    });
}

// A finding may name a line by the end of its path.
function sameLine(full, name) {
    return full === name || full.endsWith(`/${name}`);
}

function isBelow(history, stack, ancestor) {
    const { parent } = history.stackTree();
    for (let at = stack, steps = 0; at >= 0 && steps < 10000; at = parent[at] - 1, steps++)
        if (at === ancestor) return true;
    return false;
}
