// The legend of a timeline or of segments: the name of each colour with its pattern, and the choice of patterns.

import { CanvasPainter } from './painter.js';
import { blockFill, reservedFill } from './patterns.js';
import { element } from './dom.js';
import { themeColours } from './theme.js';

const WIDTH = 24,
    HEIGHT = 14; // pixels of a swatch

// [{ name, fill }] of one or more LEGENDS of colourBlocks, each name once; FREE names what is reserved only.
export function legendItems(legends, patterns, hasReserved, free = 'reserved, not allocated') {
    const colours = themeColours();
    const entries = new Map(legends.flat().map((entry) => [entry.name, entry.index]));
    const items = [...entries].map(([name, index]) => ({ name, fill: blockFill(colours, index, patterns) }));
    if (hasReserved) items.push({ name: free, fill: reservedFill(colours) });
    return items;
}

export function legendEntries(items) {
    return items.map(({ name, fill }) => {
        const size = { width: String(WIDTH), height: String(HEIGHT) };
        const swatch = element('canvas', { ...size, 'aria-hidden': 'true' });
        new CanvasPainter(swatch.getContext('2d')).rect(0, 0, WIDTH, HEIGHT, fill);
        return element('span', { class: 'entry' }, swatch, name);
    });
}

// The views share one choice: INPUT shows it.
export function patternsChoice(app) {
    const onchange = () => app.set({ patterns: input.checked });
    const input = element('input', { type: 'checkbox', onchange });
    return { node: element('label', { class: 'field' }, input, element('span', {}, 'Patterns')), input };
}
