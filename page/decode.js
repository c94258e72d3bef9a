// Reads the container that reports/page writes: base64 of gzip of "GMDPAGE1", the length of the JSON, the JSON and
// the columns. Whatever is wrong with it is an Error whose message the reader of the page can act on.

const MAGIC = 'GMDPAGE1';
const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f64: Float64Array };

function bytesOfBase64(text) {
    // The built-in is ten times as fast as atob, but browsers have had it since 2025 only.
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
}

async function gunzip(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

function rawColumn(bytes, column, start) {
    const type = ARRAYS[column.type];
    if (column.count * type.BYTES_PER_ELEMENT !== column.bytes)
        throw new Error('a column has the wrong length');
    const copy = bytes.slice(start, start + column.bytes);
    return new type(copy.buffer, 0, column.count);
}

// LEB128, unsigned (varint) or as zigzag differences (delta). Five bytes and more exceed the 32 bits of the operators.
function variableColumn(bytes, column, start) {
    const out = new ARRAYS[column.type](column.count);
    const end = start + column.bytes;
    const delta = column.coding === 'delta';
    let at = start,
        previous = 0;
    for (let i = 0; i < out.length; i++) {
        let byte = bytes[at++];
        let value = byte & 127;
        for (let shift = 7; byte > 127; shift += 7) {
            if (at >= end) throw new Error('a column ends within a number');
            byte = bytes[at++];
            value += shift < 28 ? (byte & 127) << shift : (byte & 127) * 2 ** shift;
        }
        if (delta) {
            previous += value % 2 ? -(value + 1) / 2 : value / 2;
            value = previous;
        }
        out[i] = value;
    }
    if (at !== end) throw new Error('a column has the wrong length');
    return out;
}

// The columns by name, each decoded when it is first asked for.
class Columns {
    constructor(directory, bytes, start) {
        this.directory = directory;
        this.bytes = bytes;
        this.start = start;
        this.decoded = new Map();
    }

    has(name) {
        return Object.hasOwn(this.directory, name);
    }

    get(name) {
        if (this.decoded.has(name)) return this.decoded.get(name);
        if (!this.has(name)) throw new Error(`the column ${name} is missing`);
        const column = this.directory[name];
        const start = this.start + column.offset;
        if (!ARRAYS[column.type] || start + column.bytes > this.bytes.length)
            throw new Error(`the column ${name} lies outside the data`);
        const decode = column.coding === 'raw' ? rawColumn : variableColumn;
        const values = decode(this.bytes, column, start);
        this.decoded.set(name, values);
        return values;
    }
}

// BASE64 -> { report: the JSON, columns: Columns }
export async function decodeContainer(base64) {
    const bytes = await gunzip(bytesOfBase64(base64));
    const magic = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
    if (magic !== MAGIC) throw new Error(`the data begin with "${magic}", not with "${MAGIC}"`);
    const length = new DataView(bytes.buffer).getUint32(MAGIC.length, true);
    const json = MAGIC.length + 4;
    if (json + length > bytes.length) throw new Error('the data are cut off');
    const report = JSON.parse(new TextDecoder().decode(bytes.subarray(json, json + length)));
    if (report.format !== 1)
        throw new Error(`the data have format ${report.format}, this page reads format 1`);
    const start = Math.ceil((json + length) / 8) * 8;
    return { report, columns: new Columns(report.columns, bytes, start) };
}
