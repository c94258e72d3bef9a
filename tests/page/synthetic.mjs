// Histories that look like training: parameters that stay, activations that the backward pass frees in reverse,
// temporaries, gradients, and one line that keeps a little in every iteration.

const MIB = 2 ** 20;
const FILES = [
    ['torch/nn/modules/module.py', 1750, '_call_impl', 0],
    ['train.py', 12, 'main', 1],
    ['train.py', 34, 'step', 1],
    ['model.py', 21, 'forward', 1],
    ['model.py', 27, 'attention', 1],
    ['model.py', 31, 'mlp', 1],
    ['train.py', 41, 'keep_loss', 1],
    ['torch/optim/adamw.py', 201, 'step', 0],
    ['torch/autograd/graph.py', 824, 'backward', 0],
];
// Stacks: [parent stack or -1, frame]
const STACKS = [
    [-1, 1],
    [0, 2],
    [1, 0],
    [2, 3],
    [3, 4],
    [3, 5],
    [1, 6],
    [1, 7],
    [1, 8],
];
const LINES = [
    [3, 4],
    [3, 5],
    [1, 6],
    [7, 7],
    [8, 8],
]; // [file, frame]

class Recorder {
    constructor() {
        this.kind = [8]; // event 0 stands for the state before the first
        this.block = [0];
        this.segment = [0];
        this.columns = {
            alloc: [],
            free: [],
            asked: [],
            address: [],
            size: [],
            requested: [],
            stream: [],
            pool: [],
            category: [],
            stack: [],
            line: [],
        };
        this.segments = {
            alloc: [],
            free: [],
            address: [],
            size: [],
            stream: [],
            pool: [],
            kind: [],
            stack: [],
        };
        this.cache = new Map();
        this.top = 0;
        this.seed = 12345;
    }

    random() {
        this.seed = (this.seed * 1103515245 + 12345) % 2147483648;
        return this.seed / 2147483648;
    }

    event(kind, block, segment) {
        this.kind.push(kind);
        this.block.push(block + 1);
        this.segment.push(segment + 1);
        return this.kind.length - 1;
    }

    // Blocks of one size share addresses; a new one comes from the segment's end.
    address(size, stream) {
        const key = `${size}.${stream}`;
        const free = this.cache.get(key);
        if (free?.length) return free.pop();
        this.ends ??= [0, 0];
        this.room ??= [0, 0];
        if (this.room[stream] < size)
            this.newSegment(Math.max(20 * MIB, Math.ceil(size / (2 * MIB)) * 2 * MIB), stream);
        const address = this.ends[stream];
        this.ends[stream] += size;
        this.room[stream] -= size;
        return address;
    }

    newSegment(size, stream) {
        const s = this.segments,
            index = s.alloc.length;
        const values = {
            alloc: this.event(3, -1, index),
            free: 0,
            address: this.top,
            size,
            stream,
            pool: stream,
            kind: 1,
            stack: 0,
        };
        for (const [name, value] of Object.entries(values)) s[name].push(value);
        this.ends[stream] = this.top;
        this.room[stream] = size;
        this.top += size + 2 * MIB;
    }

    allocate(requested, { stack, line, category, stream }) {
        const size = Math.ceil(requested / 512) * 512;
        const address = this.address(size, stream ?? 0);
        const index = this.columns.alloc.length;
        const values = {
            alloc: this.event(0, index, -1),
            free: 0,
            asked: 0,
            address,
            size,
            requested,
            stream: stream ?? 0,
            pool: stream ?? 0,
            category,
            stack: stack + 1,
            line: line + 1,
        };
        for (const [name, value] of Object.entries(values)) this.columns[name].push(value);
        return index;
    }

    free(block) {
        const c = this.columns;
        c.asked[block] = this.event(1, block, -1) - c.alloc[block];
        c.free[block] = this.event(2, block, -1) - c.alloc[block];
        const key = `${c.size[block]}.${c.stream[block]}`;
        if (!this.cache.has(key)) this.cache.set(key, []);
        this.cache.get(key).push(c.address[block]);
    }
}

function iteration(recorder, layers) {
    const activations = [];
    const length = 33 + 10 * Math.floor(recorder.random() * 4); // the batch's length, which sizes depend on
    for (let layer = 0; layer < layers; layer++) {
        const size = (1 + (layer % 4)) * length * 16384;
        activations.push(
            recorder.allocate(size, { stack: 4, line: 0, category: 1 }),
            recorder.allocate(size * 2, { stack: 5, line: 1, category: 1 }),
        );
        const scratch = recorder.allocate(Math.ceil(recorder.random() * 8) * 65536, {
            stack: 4,
            line: 0,
            category: 4,
            stream: 1,
        });
        recorder.free(scratch);
    }
    recorder.allocate(96 * 1024, { stack: 6, line: 2, category: 0 });
    const gradients = [];
    for (const activation of activations.reverse()) {
        gradients.push(recorder.allocate(512 * 1024, { stack: 8, line: 4, category: 2 }));
        recorder.free(activation);
    }
    const update = recorder.allocate(6 * MIB, { stack: 7, line: 3, category: 3 });
    recorder.free(update);
    for (const gradient of gradients) recorder.free(gradient);
}

// About EVENTS events of a model with LAYERS layers.
export function syntheticHistory(events, prefix, layers) {
    const recorder = new Recorder();
    for (let i = 0; i < 2 * layers; i++)
        recorder.allocate((2 + (i % 5)) * MIB, { stack: 0, line: -1, category: 0 });
    const iterations = [];
    while (recorder.kind.length < events) {
        iterations.push(recorder.kind.length);
        iteration(recorder, layers);
    }
    return describe(recorder, iterations, prefix);
}

function describe(recorder, iterations, prefix) {
    const { columns: c, segments: s, kind } = recorder;
    const deltas = new Float64Array(kind.length + 2);
    c.alloc.forEach((at, i) => {
        deltas[at] += c.size[i];
        if (c.free[i]) deltas[at + c.free[i]] -= c.size[i];
    });
    let sum = 0,
        peak = { event: 0, allocated: 0 };
    for (let e = 0; e < kind.length; e++) {
        sum += deltas[e];
        if (sum > peak.allocated) peak = { event: e, allocated: sum };
    }
    const info = {
        name: `synthetic, ${iterations.length} iterations`,
        device: '0',
        input: 0,
        address_base: '139637976727552',
        events: kind.length,
        blocks: c.alloc.length,
        segments: s.alloc.length,
        truncated: false,
        has_time: true,
        streams: ['default', 'side'],
        pools: ['large', 'side pool'],
        categories: ['parameter', 'activation', 'gradient', 'optimizer', 'temporary'],
        iterations: iterations.length > 500 ? [] : iterations,
        peak,
        ooms: [],
        marks: [],
        prefix,
    };
    const columns = {
        'e.kind': ['u8', 'raw', kind],
        'e.block': ['u32', 'delta', recorder.block],
        'e.segment': ['u32', 'varint', recorder.segment],
        'e.time': ['f64', 'delta', kind.map((_, i) => i * 13)],
        'b.alloc': ['u32', 'delta', c.alloc],
        'b.free': ['u32', 'varint', c.free],
        'b.asked': ['u32', 'varint', c.asked],
        'b.address': ['f64', 'delta', c.address],
        'b.size': ['f64', 'varint', c.size],
        'b.requested': ['f64', 'varint', c.requested],
        'o.event': ['u32', 'delta', []],
        'o.bytes': ['f64', 'varint', []],
        'o.item': ['u32', 'varint', []],
    };
    for (const name of ['stream', 'pool', 'category']) columns[`b.${name}`] = ['u8', 'raw', c[name]];
    for (const name of ['stack', 'line']) columns[`b.${name}`] = ['u32', 'varint', c[name]];
    for (const name of ['alloc', 'free', 'address', 'size'])
        columns[`s.${name}`] = ['f64', 'varint', s[name]];
    for (const name of ['stream', 'pool', 'kind']) columns[`s.${name}`] = ['u8', 'raw', s[name]];
    const prefixed = Object.fromEntries(
        Object.entries(columns).map(([name, column]) => [prefix + name, column]),
    );
    return { info, columns: prefixed };
}

// Columns of stacks, frames and lines; STRINGS takes their texts.
export function stackColumns(strings, files) {
    const used = files ?? FILES;
    const text = (value) => strings.push(value) - 1;
    return {
        'k.parent': ['u32', 'varint', STACKS.map(([parent]) => parent + 1)],
        'k.frame': ['u32', 'varint', STACKS.map(([, frame]) => frame)],
        'f.file': ['u32', 'varint', used.map(([file]) => text(file))],
        'f.line': ['u32', 'varint', used.map(([, line]) => line)],
        'f.name': ['u32', 'varint', used.map(([, , name]) => text(name))],
        'f.user': ['u8', 'raw', used.map(([, , , user]) => user)],
        'l.file': ['u32', 'varint', LINES.map(([, frame]) => text(used[frame][0]))],
        'l.line': ['u32', 'varint', LINES.map(([, frame]) => used[frame][1])],
    };
}
