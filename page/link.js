// The state of the page as the fragment of its address, so that a colleague who opens the link sees the same moment.

// Name in the address -> how it is read and whether it is written; what is null is left out.
const readNumber = (text) => (/^\d{1,15}$/.test(text) ? Number(text) : null);
const readWord = (text) => (/^[\w.-]{1,64}$/.test(text) ? text : null);
const readText = (value) => value.slice(0, 1000) || null;
const readFlag = (value) => (value === '1' ? true : null);
const readPair = (value) => {
    const match = /^(\d{1,15})-(\d{1,15})$/.exec(value);
    return match ? [Number(match[1]), Number(match[2])] : null;
};
// The numbers of events that a reader sees; that of the state before the first is -1.
const readEvent = (text) => (text === 'start' ? -1 : readNumber(text));
const readEvents = (text) => {
    const match = /^(start|\d{1,15})-(\d{1,15})$/.exec(text);
    return match ? [readEvent(match[1]), Number(match[2])] : null;
};
const FIELDS = {
    view: readWord,
    history: readNumber,
    event: readEvent,
    range: readEvents,
    height: readPair,
    span: readEvents,
    block: readNumber,
    finding: readNumber,
    evidence: readNumber,
    query: readText,
    line: readText,
    stack: readNumber,
    colour: readWord,
    patterns: readFlag,
    by: readWord,
    from: readEvent,
    fromHistory: readNumber,
    fromRange: readEvents,
    table: readWord,
    filter: readText,
};

export function readLink(fragment) {
    const state = {};
    for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, ''))) {
        const read = Object.hasOwn(FIELDS, name) ? FIELDS[name](value) : null;
        if (read !== null) state[name] = read;
    }
    return state;
}

export function writeLink(state) {
    const parameters = new URLSearchParams();
    for (const name of Object.keys(FIELDS)) {
        const value = state[name];
        if (value === null || value === undefined || value === '' || value === false) continue;
        parameters.set(
            name,
            value === true ? '1' : Array.isArray(value) ? value.map(textOf).join('-') : textOf(value),
        );
    }
    return `#${parameters}`;
}

function textOf(value) {
    if (value === -1) return 'start';
    return typeof value === 'number' ? String(Math.round(value)) : String(value);
}
