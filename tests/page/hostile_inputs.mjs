// Inputs of strangers for gmd: results, cases and recordings whose names are not what names should be.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const HOSTILE_NAMES = [
    '</script><script>window.hacked = 1</script>',
    '"\'><img src=x onerror="window.hacked = 2">',
    'a\u0007c\u001b[31m\u0085',
    '\u202egnp.exe\u202c \u200f\u05d0\u05d1',
    '<!-- <script>',
    `${'x'.repeat(1 << 20)}.py`,
    '${1}`&lt;b&gt;',
];

// The texts of a result that a stranger chooses; others are words that gmd knows.
const FREE = new Set(
    [
        [
            'allocator',
            'snapshot',
            'message',
            'name',
            'variant',
            'notes',
            'path',
            'case',
            'replay',
            'item',
            'detail',
        ],
        [
            'reason',
            'skipped',
            'failed',
            'conf',
            'fix',
            'evidence',
            'what',
            'processor',
            'governor',
            'label',
            'file',
        ],
        ['function', 'part', 'ended_early'],
    ].flat(),
);

// RESULT with a hostile name in place of each free text, in turn.
export function hostileResult(result) {
    let next = 0;
    const spoil = (value, key) => {
        if (Array.isArray(value)) return value.map((one) => spoil(one, key));
        if (value && typeof value === 'object')
            return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, spoil(one, name)]));
        return typeof value === 'string' && FREE.has(key)
            ? HOSTILE_NAMES[next++ % HOSTILE_NAMES.length]
            : value;
    };
    // What oracles and parts of a gate are called is checked.
    const known = ({ oracles, gate, ...rest }) => ({
        ...spoil(rest),
        ...(oracles && { oracles }),
        ...(gate && {
            gate: {
                ...spoil(gate),
                oracles: gate.oracles,
                categories: gate.categories,
                figures: gate.figures,
                parts: gate.parts.map((part) => ({
                    ...spoil(part),
                    name: part.name,
                    category: part.category,
                })),
                findings: gate.findings.map((finding) => ({ ...spoil(finding), part: finding.part })),
            },
        }),
    });
    const spoilt = known(result);
    for (const list of ['scenarios', 'replays'])
        if (Array.isArray(result[list]))
            spoilt[list] = result[list].map((run) => ({ ...spoil(run), oracles: run.oracles }));
    return spoilt;
}

// A copy of the case FROM in FOLDER whose path is HTML.
export function hostileCase(folder, from) {
    const path = join(folder, '<', "script><img src=x onerror='window.hacked = 3'>\u202e.gmd");
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, readFileSync(from));
    return path;
}

// A recording of PyTorch's whose frames, annotations and settings are hostile.
export function hostileSnapshot(path) {
    const script = `
import json, pickle, sys
names = json.load(sys.stdin)
events, address = [], 0x10000000
for i in range(120):
    name = names[i % len(names)]
    frames = [{"filename": name, "name": names[(i + 1) % len(names)], "line": i},
              {"filename": "train.py", "name": name, "line": 3}]
    kind = dict(addr=address + i * 4096, size=4096, stream=0, time_us=i, frames=frames)
    if i % 40 == 0:
        events.append(dict(kind, action="segment_alloc", addr=address + i * 4096, size=40 * 4096))
    events.append(dict(kind, action="alloc"))
    if i % 3 == 0:
        events += [dict(kind, action=action) for action in ("free_requested", "free_completed")]
annotations = [dict(stage="START", name=name, device=0, time_us=i) for i, name in enumerate(names)]
with open(sys.argv[1], "wb") as file:
    pickle.dump(dict(segments=[], device_traces=[events], external_annotations=annotations,
                     allocator_settings={"PYTORCH_CUDA_ALLOC_CONF": names[0]}), file)
`;
    execFileSync('python3', ['-c', script, path], {
        input: JSON.stringify([...HOSTILE_NAMES, 'a\u0000b.py']),
    });
    return path;
}
