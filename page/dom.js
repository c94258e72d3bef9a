// Building the document. Every text goes through textContent: nothing of the data is ever read as HTML.

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
