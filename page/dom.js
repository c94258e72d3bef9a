// Building the document. Every text goes through textContent: nothing of the data is ever read as HTML.

import { shortText } from './format.js';

const NAME_LENGTH = 60, // letters of a name in a list, at most
    LEAST_LENGTH = 8,
    TITLE_LENGTH = 200,
    ARROW = 42; // pixels of a closed list that are not its text

// element('button', { class: 'x', onclick: f, 'aria-label': 't' }, 'text', child...); what is null is left out.
export function element(tag, properties, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
        else node.setAttribute(name, value === true ? '' : value);
    }
    addChildren(node, children);
    return node;
}

function addChildren(node, children) {
    for (const child of children.flat(Infinity)) {
        if (child === null || child === undefined || child === false) continue;
        node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
}

export function replaceChildren(node, ...children) {
    node.replaceChildren();
    addChildren(node, children);
}

export function button(text, onclick, properties) {
    return element('button', { type: 'button', onclick, ...properties }, text);
}

// A choice among [value, text] pairs, with its label.
export function chooser(label, options, onchange, properties) {
    const select = element(
        'select',
        { onchange: () => onchange(select.value), ...properties },
        options.map(([value, text]) => element('option', { value }, text)),
    );
    return { node: element('label', { class: 'field' }, element('span', {}, label), select), select };
}

export function setOptions(select, options, value) {
    replaceChildren(
        select,
        options.map(([key, text]) => element('option', { value: key }, text)),
    );
    select.value = String(value);
}

// As setOptions, for names of strangers: the list is no wider than the style sheet allows, and a name that does not fit
// loses its middle. Histories of one file differ at the end, and names that are cut there look the same.
export function setNames(select, options, value) {
    const style = getComputedStyle(select);
    const room = (parseFloat(style.maxWidth) || Infinity) - ARROW;
    const context = element('canvas').getContext('2d');
    context.font = style.font;
    const fits = (text) => context.measureText(text).width <= room;
    const shown = options.map(([key, name]) => [key, fittingName(name, fits)]);
    setOptions(select, shown, value);
    options.forEach(([, name], i) => (select.options[i].title = shortText(name, TITLE_LENGTH)));
}

function fittingName(name, fits) {
    let low = LEAST_LENGTH,
        high = NAME_LENGTH;
    while (low < high) {
        const middle = (low + high + 1) >>> 1;
        if (fits(shortText(name, middle))) low = middle;
        else high = middle - 1;
    }
    return shortText(name, low);
}

// A small table of facts: [name, value] pairs, those without a value left out.
export function factList(facts) {
    return element(
        'dl',
        { class: 'facts' },
        facts
            .filter(([, value]) => value !== null && value !== undefined && value !== '')
            .map(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
    );
}

export function copyText(text, place) {
    const area = element('textarea', {
        class: 'off-screen',
        readonly: true,
        'aria-hidden': 'true',
        tabindex: '-1',
    });
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy'); // the newer interface is refused to pages opened from disk
    area.remove();
    if (place) place.textContent = copied ? 'Copied' : 'The browser refused to copy';
}

export function download(name, blob) {
    const link = element('a', { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
