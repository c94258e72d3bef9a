// What lives at one moment, or the difference of two, as a tree of frames (or of files and lines) with bytes.

// MOMENTS: one or two { history, event }; the tree's nodes have bytes[i] for each. Frames are matched by their text, so
// that two files can be compared.
export function flameTree(moments, by) {
    const root = flameNode('all', null);
    moments.forEach(({ history, event }, i) => {
        if (by === 'line') addLines(root, history, event, i);
        else addStacks(root, history, event, i);
    });
    total(root, moments.length);
    return root;
}

function flameNode(name, parent) {
    return {
        name,
        parent,
        children: new Map(),
        self: [0, 0],
        bytes: [0, 0],
        weight: 0,
        user: false,
        stack: null,
        line: null,
    };
}

function childOf(node, name) {
    if (!node.children.has(name)) node.children.set(name, flameNode(name, node));
    return node.children.get(name);
}

function addLines(root, history, event, i) {
    const lines = history.ofBlocks('line');
    for (const block of history.liveBlocks(event)) {
        const name = history.lineName(lines[block] - 1);
        const node = childOf(childOf(root, name.replace(/:\d+$/, '')), name);
        node.line = lines[block] ? name : null;
        node.user = lines[block] > 0;
        node.self[i] += history.blockSize[block];
    }
}

function addStacks(root, history, event, i) {
    const bytes = new Map();
    const stacks = history.ofBlocks('stack');
    for (const block of history.liveBlocks(event)) {
        const stack = stacks[block] - 1;
        bytes.set(stack, (bytes.get(stack) ?? 0) + history.blockSize[block]);
    }
    for (const [stack, sum] of bytes) {
        let node = root;
        const frames =
            stack < 0
                ? [{ text: 'no stack recorded', user: false, id: null }]
                : history.stackText(stack).reverse();
        for (const frame of frames) {
            node = childOf(node, frame.text);
            node.user = frame.user;
            if (i === 0) node.stack = frame.id; // a highlight is of the first moment's history
        }
        node.self[i] += sum;
    }
}

// A node is as wide as the larger of its two moments, so that what is gone is seen as well as what is new. Stacks may be
// deep, so this is a loop: parents before children, then back.
function total(root, moments) {
    const order = [root];
    for (let at = 0; at < order.length; at++) order.push(...order[at].children.values());
    for (let at = order.length - 1; at >= 0; at--) {
        const node = order[at];
        node.weight += Math.max(...node.self.slice(0, moments));
        for (let i = 0; i < moments; i++) node.bytes[i] += node.self[i];
        if (!node.parent) continue;
        node.parent.weight += node.weight;
        for (let i = 0; i < moments; i++) node.parent.bytes[i] += node.bytes[i];
    }
}

// The nodes that are visible with FOCUS over the whole width: [{ node, x, width: parts of 1, depth }]; narrower than
// LEAST they are left out.
export function layoutFlame(focus, least) {
    const bars = [];
    const path = [];
    for (let node = focus.parent; node; node = node.parent) path.unshift(node);
    path.forEach((node, depth) => bars.push({ node, x: 0, width: 1, depth }));
    const waiting = [{ node: focus, x: 0, width: 1, depth: path.length }];
    while (waiting.length) {
        const bar = waiting.pop();
        bars.push(bar);
        let x = bar.x;
        for (const child of [...bar.node.children.values()].sort((a, b) => b.weight - a.weight)) {
            const width = focus.weight ? child.weight / focus.weight : 0;
            if (width >= least) waiting.push({ node: child, x, width, depth: bar.depth + 1 });
            x += width;
        }
    }
    return bars;
}
