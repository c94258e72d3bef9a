// The legend of a timeline: the name of each colour with its pattern.

import { PATTERNS } from './colours.js';
import { element } from './dom.js';
import { themeColours } from './theme.js';

const WIDTH = 18,
    HEIGHT = 12; // pixels of a swatch

// [{ name, colour, kind: of its pattern }] of one or more LEGENDS of colourBlocks, each name once; FREE names what is
// reserved only.
export function legendItems(legends, patterns, hasReserved, free = 'reserved, not allocated') {
    const colours = themeColours();
    const entries = new Map(legends.flat().map((entry) => [entry.name, entry.index]));
    const items = [...entries].map(([name, index]) => ({
        name,
        colour: colours.blocks[index],
        kind: patterns ? index % PATTERNS : 0,
    }));
    if (hasReserved) items.push({ name: free, colour: colours.cached, kind: 1 });
    return items;
}

export function legendEntries(...legend) {
    const { ground } = themeColours();
    return legendItems(...legend).map((item) => legendEntry(item, ground));
}

function legendEntry({ name, colour, kind }, ground) {
    const swatch = element('canvas', { width: String(WIDTH), height: String(HEIGHT), 'aria-hidden': 'true' });
    drawSwatch(swatch.getContext('2d'), colour, kind, ground);
    return element('span', { class: 'entry' }, swatch, name);
}

function drawSwatch(context, colour, kind, ink) {
    context.fillStyle = colour;
    context.fillRect(0, 0, WIDTH, HEIGHT);
    context.strokeStyle = ink;
    for (let at = -HEIGHT; at < WIDTH + HEIGHT; at += 7) {
        context.beginPath();
        if (kind === 1 || kind === 2) {
            context.moveTo(at, kind === 1 ? HEIGHT : 0);
            context.lineTo(at + HEIGHT, kind === 1 ? 0 : HEIGHT);
        } else if (kind === 3 && at >= 0) {
            context.rect(at + 2, 3, 1, 1);
            context.rect(at + 2, 8, 1, 1);
        }
        context.stroke();
    }
}
