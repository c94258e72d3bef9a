// Writes the page's container from JavaScript objects, for pages whose data no program has recorded: hostile names and
// very long histories. docs of the format: page/decode.js reads it, reports/page writes it.
import { gzipSync } from 'node:zlib';

const BYTES = { u8: 1, u16: 2, u32: 4, i32: 4, f64: 8 };
const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f64: Float64Array };

function variable(values, delta) {
    const out = Buffer.alloc(values.length * 10);
    let at = 0,
        previous = 0;
    for (const value of values) {
        let left = value;
        if (delta) {
            const step = value - previous;
            left = step < 0 ? -step * 2 - 1 : step * 2;
            previous = value;
        }
        for (; left > 127; left = Math.floor(left / 128)) out[at++] = (left % 128) | 128;
        out[at++] = left;
    }
    return out.subarray(0, at);
}

// COLUMNS: { name: [type, coding, values] } -> the container before gzip
function encode(report, columns) {
    const directory = {},
        parts = [];
    let offset = 0;
    for (const [name, [type, coding, values]] of Object.entries(columns)) {
        const bytes =
            coding === 'raw'
                ? Buffer.from(ARRAYS[type].from(values).buffer)
                : variable(values, coding === 'delta');
        directory[name] = { type, coding, count: values.length, offset, bytes: bytes.length };
        const padding = -bytes.length & 7;
        parts.push(bytes, Buffer.alloc(padding));
        offset += bytes.length + padding;
        if (coding === 'raw' && bytes.length !== values.length * BYTES[type]) throw new Error(name);
    }
    const json = Buffer.from(JSON.stringify({ format: 1, gmd: 'test', ...report, columns: directory }));
    const head = Buffer.alloc(12);
    head.write('GMDPAGE1', 'latin1');
    head.writeUInt32LE(json.length, 8);
    return Buffer.concat([head, json, Buffer.alloc(-(12 + json.length) & 7), ...parts]);
}

const escapeHtml = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

// TEMPLATE: the joined page as cmake/GmdPage.cmake leaves it.
export function makePage(template, report, columns) {
    const data = gzipSync(encode(report, columns), { level: 6 }).toString('base64');
    return template
        .replace('<!-- gmd:title -->', () => escapeHtml(report.title))
        .replace('<!-- gmd:data -->', () => `<script id="gmd-data" type="text/plain">${data}</script>`);
}
