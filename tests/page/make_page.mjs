// node make_page.mjs TEMPLATE KIND OUTPUT - writes a page for the tests; KIND: small, hostile or a number of events.
import { readFileSync, writeFileSync } from 'node:fs';
import { makePage } from './container.mjs';
import { stackColumns, syntheticHistory } from './synthetic.mjs';

const HOSTILE = [
    '</script><script>window.hacked = 1</script>',
    '"\'><img src=x onerror="window.hacked = 2">',
    'a\u0000b\u0007c\u001b[31m',
    '\u202egnp.exe\u202c \u200f\u05d0\u05d1',
    '<!-- <script>',
    `${'x'.repeat(1 << 20)}.py`,
    '</s',
    '${1}`',
    '&lt;b&gt;',
];

// LAST: the history's last event
function smallFindings(last) {
    return [
        {
            id: 'f0',
            input: 0,
            title: 'train.py:41 keeps 96 KiB in each iteration.',
            kind: 'diagnosis',
            class: 'leak',
            bytes: 98304 * 12,
            detail: ['Blocks of this line are never freed; each iteration adds one.'],
            fix: 'Keep loss.item() in place of loss.',
            case: null,
            evidence: [
                { view: 'timeline', history: 0, line: 'train.py:41', label: "The line's blocks" },
                { view: 'flame', history: 0, event: last, label: 'Who holds memory at the end' },
                { view: 'timeline', history: 0, span: [300, 600], label: 'Two iterations' },
            ],
        },
        {
            id: 'f1',
            input: 0,
            title: 'Block 100 was reused before its last use was done.',
            kind: 'violation',
            class: 'stream_order.reused_early',
            bytes: 1 << 20,
            detail: ['The side stream still read it.'],
            fix: 'Call record_stream.',
            case: 'gmd 1\nalloc a 1048576\nfree a\n',
            evidence: [
                { view: 'timeline', history: 0, event: 700, blocks: [100, 101], label: 'Both blocks' },
                { view: 'state', history: 0, event: 700, blocks: [100], label: 'The state then' },
            ],
        },
        {
            id: 'f2',
            input: 0,
            title: 'The device ran out of memory.',
            kind: 'oom',
            class: 'oom',
            bytes: 512 * 2 ** 20,
            detail: [],
            fix: null,
            case: null,
            evidence: [{ view: 'state', history: 0, event: last - 40, label: 'The moment of the OOM' }],
        },
    ];
}

function smallTables() {
    return [
        {
            id: 'scenarios',
            title: 'Scenarios',
            input: 0,
            columns: [
                { name: 'Scenario', unit: 'text', align: 'left' },
                { name: 'Peak', unit: 'B', align: 'right' },
                { name: 'Ratio', unit: 'ratio', align: 'right' },
            ],
            rows: Array.from({ length: 450 }, (_, i) => [
                `scenario_${i}`,
                ((i * 7919) % 1000) * 4096,
                (i % 17) / 17,
            ]),
        },
        {
            id: 'oracles',
            title: 'Oracles',
            input: 0,
            columns: [
                { name: 'Oracle', unit: 'text' },
                { name: 'Saw', unit: 'count' },
                { name: 'Cost', unit: 'ns' },
            ],
            rows: [
                ['overlap', 1234, 12.5],
                ['stream_order', 99, 1200],
            ],
        },
    ];
}

function smallReport() {
    const strings = [];
    const one = syntheticHistory(2500, 'h0.', 12),
        other = syntheticHistory(2100, 'h1.', 9);
    other.info.name = 'synthetic, fewer layers';
    const last = one.info.events - 1;
    one.info.ooms = [
        {
            event: last - 40,
            bytes: 512 * 2 ** 20,
            text: 'CUDA out of memory. Tried to allocate 512.00 MiB.',
            free: 2 ** 26,
            cached: [{ cause: 'left free in segments that a live block holds', bytes: 3 * 2 ** 20 }],
        },
    ];
    one.columns['h0.o.event'] = ['u32', 'delta', [last - 40, last - 20]];
    one.columns['h0.o.bytes'] = ['f64', 'varint', [512 * 2 ** 20, 512 * 2 ** 20]];
    one.columns['h0.o.item'] = ['u32', 'varint', [1, 1]];
    one.info.marks = [
        { event: 700, label: 'block 100 was reused before its last use', kind: 'violation' },
        { event: 300, label: 'epoch 1', kind: 'phase' },
    ];
    const report = {
        title: 'train.py on gpu 0',
        strings,
        histories: [one.info, other.info],
        inputs: [
            {
                name: 'snapshot.pickle',
                kind: 'snapshot',
                verdict: 'fail',
                summary: 'Memory grows by 96 KiB an iteration.',
            },
            { name: 'other.pickle', kind: 'snapshot', verdict: 'healthy', summary: 'Nothing was found.' },
        ],
        findings: smallFindings(last),
        tables: smallTables(),
    };
    return { report, columns: { ...one.columns, ...other.columns, ...stackColumns(strings) } };
}

// Every text of the small report is one of a stranger who means harm.
function hostileReport() {
    const { report, columns } = smallReport();
    let at = 0;
    const next = () => HOSTILE[at++ % HOSTILE.length];
    const change = (value, name) => {
        if (Array.isArray(value)) return value.map((one) => change(one, name));
        if (value && typeof value === 'object')
            return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, change(one, key)]));
        const fixed = ['id', 'kind', 'view', 'unit', 'align', 'prefix', 'address_base', 'class', 'line'];
        return typeof value === 'string' && !fixed.includes(name) ? next() : value;
    };
    return { report: change(report, ''), columns };
}

function longReport(events) {
    const strings = [];
    const { info, columns } = syntheticHistory(events, 'h0.', 300);
    const report = {
        title: `${info.events} events`,
        strings,
        histories: [info],
        findings: [],
        tables: [],
        inputs: [{ name: 'synthetic', kind: 'snapshot', verdict: 'healthy', summary: 'Synthetic.' }],
    };
    return { report, columns: { ...columns, ...stackColumns(strings) } };
}

export function pageOf(template, kind) {
    const { report, columns } =
        kind === 'small' ? smallReport() : kind === 'hostile' ? hostileReport() : longReport(Number(kind));
    return makePage(template, report, columns);
}

if (process.argv[1]?.endsWith('make_page.mjs')) {
    const [template, kind, output] = process.argv.slice(2);
    writeFileSync(output, pageOf(readFileSync(template, 'utf8'), kind));
}
