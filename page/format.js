// Numbers and texts as people read them.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function formatBytes(bytes) {
    let value = Math.abs(bytes),
        unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
        value /= 1024;
        unit++;
    }
    const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    const shown = Number.isInteger(value) ? String(value) : value.toFixed(digits);
    return `${bytes < 0 ? '−' : ''}${shown} ${UNITS[unit]}`;
}

export function formatSignedBytes(bytes) {
    return bytes > 0 ? `+${formatBytes(bytes)}` : formatBytes(bytes);
}

export function formatCount(count) {
    return Math.round(count).toLocaleString('en-US');
}

// MORE: digits behind the point than usual, at most those of a microsecond.
export function formatMicroseconds(us, more = 0) {
    if (us < 1000) return `${us} µs`;
    if (us < 1e6) return `${(us / 1e3).toFixed(Math.min(1 + more, 3))} ms`;
    return `${(us / 1e6).toFixed(Math.min((us < 1e8 ? 2 : 0) + more, 6))} s`;
}

// The times of an axis in order, with as many digits as tell neighbours apart.
export function formatTimes(times) {
    for (let more = 0; ; more++) {
        const texts = times.map((time) => formatMicroseconds(time, more));
        if (more === 6 || texts.every((text, i) => text !== texts[i - 1] || times[i] === times[i - 1]))
            return texts;
    }
}

export function formatNanoseconds(ns) {
    return Math.abs(ns) < 1000 ? `${Number(ns.toFixed(1))} ns` : formatMicroseconds(Math.round(ns / 1000));
}

export const CELL_LENGTH = 160; // characters of a text in a table; a copy has them all

// UNIT as tables of the report have it; '+B' are the bytes of a change, with their sign.
export function formatValue(value, unit) {
    if (value === null || value === undefined) return '';
    if (typeof value !== 'number') return shortText(String(value), CELL_LENGTH);
    if (unit === '+B') return formatSignedBytes(value);
    if (unit === 'B') return formatBytes(value);
    if (unit === 'ns') return formatNanoseconds(value);
    if (unit === 'count') return formatCount(value);
    if (unit === 'ratio') return value.toFixed(3);
    return String(value);
}

export function plural(count, word) {
    return `${formatCount(count)} ${word}${count === 1 ? '' : 's'}`;
}

// Controls, marks that turn the direction of writing, what has no width, and halves of a character.
const HIDDEN =
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;

// A name is data of a stranger: what cannot be seen, or changes the order of what stands around the name, becomes a
// visible sign. After letters that are written from right to left a mark ends their influence: "name:41" stays in that
// order.
export function visibleText(text) {
    return text
        .replace(/\u2400/g, '‹U+0000›') // what gmd reads a NUL as; few fonts have the picture
        .replace(HIDDEN, (c) => `‹U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}›`)
        .replace(/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+/g, '$&\u200e');
}

const isTrail = (text, at) => (text.charCodeAt(at) & 0xfc00) === 0xdc00; // of a surrogate pair

// At most LENGTH characters: the head and the tail, which for paths says most.
export function shortText(text, length) {
    const limit = length ?? 200;
    if (text.length <= limit) return visibleText(text);
    let head = Math.floor(limit / 3),
        tail = text.length - (limit - head - 1);
    if (isTrail(text, head)) head--;
    if (isTrail(text, tail)) tail++;
    return `${visibleText(text.slice(0, head))}…${visibleText(text.slice(tail))}`;
}

export function formatAddress(history, offset) {
    return `0x${(BigInt(history.info.address_base ?? 0) + BigInt(offset)).toString(16)}`;
}

// The step of an axis: 1, 2 or 5 times a power of ten (or of two, for bytes), so that about COUNT steps fit RANGE.
export function axisStep(range, count, binary) {
    const rough = range / Math.max(count, 1);
    if (binary) return 2 ** Math.max(0, Math.ceil(Math.log2(rough)));
    const power = 10 ** Math.floor(Math.log10(rough));
    const factor = [1, 2, 5, 10].find((f) => f * power >= rough) ?? 10;
    return Math.max(1, factor * power);
}
