// The view "State": the allocator's segments, blocks and gaps at the event, stepped with keys.

import { CLASS_FIRST } from './timeline_layout.js';
import { CanvasPainter } from './painter.js';
import { DataTable } from './data_table.js';
import { blockDetails, blockSummary } from './block_details.js';
import { element, replaceChildren } from './dom.js';
import {
    choiceSentences,
    eventSentence,
    isPending,
    refusalAt,
    refusalSentences,
    segmentSentences,
} from './state_reasons.js';
import { coloursOf } from './colours.js';
import { formatAddress, formatBytes, formatCount, plural, shortText } from './format.js';
import { layoutSegments, partsOf, partsOfPiece, pieceAt } from './state_layout.js';
import { blockFill, reservedFill } from './patterns.js';
import { legendEntries, legendItems, patternsChoice } from './legend.js';
import { liveSentence, memorySums } from './line_sums.js';
import { highlightOf } from './search.js';
import { inkOn, mixColours, themeColours } from './theme.js';
import { segmentsAt } from './state_model.js';

const KIND_NAMES = ['small', 'large', 'expandable'];
const DIMMED = 0.75;
const SIZE_WIDTH = 58; // pixels of the longest size: a part of a number would be another number

export class StateView {
    constructor(app) {
        this.app = app;
        this.name = 'state';
        this.canvas = element('canvas', { tabindex: '0', role: 'img' });
        this.tip = element('div', { class: 'tip', hidden: true });
        this.area = element('div', { class: 'segments' }, this.canvas, this.tip);
        this.text = element('div', { class: 'reasons', role: 'status' });
        this.legend = element('div', { class: 'legend', role: 'group', 'aria-label': 'Colours' });
        const patterns = patternsChoice(app);
        this.patterns = patterns.input;
        this.side = element('div', { class: 'side' });
        this.list = element('div', { class: 'moment' });
        this.root = element(
            'div',
            { class: 'view state' },
            this.text,
            this.area,
            element(
                'p',
                { class: 'note keys' },
                'Keys: ← → event (Shift: 10), N B next and previous allocation, ↑ ↓ block, P peak, Home, End. ' +
                    'Crossed out: freed, but a stream may still use it.',
            ),
            element('div', { class: 'tools' }, patterns.node),
            this.legend,
            element('div', { class: 'columns' }, this.list, this.side),
        );
        this.canvas.addEventListener('pointermove', (event) => this.hover(event.offsetX, event.offsetY));
        this.canvas.addEventListener('pointerleave', () => this.hover(-1, -1));
        this.canvas.addEventListener('click', (event) => this.pick(event.offsetX, event.offsetY));
        this.canvas.addEventListener('keydown', (event) => {
            if (this.key(event)) event.preventDefault();
        });
        new ResizeObserver(() => this.layout && this.draw()).observe(this.area);
    }

    update(state, changed) {
        const history = (this.history = this.app.history());
        if (!history) {
            replaceChildren(this.text, element('p', {}, 'These inputs have no memory history.'));
            return;
        }
        if (this.colours?.history !== history || this.colours.colouring !== state.colour)
            this.colours = { history, colouring: state.colour, ...coloursOf(history, state.colour) };
        if (
            ['view', 'history', 'query', 'line', 'stack', 'finding', 'evidence'].some((name) =>
                changed.has(name),
            )
        )
            this.found = highlightOf(history, state, this.app.report);
        this.app.noteFound?.(this.found);
        this.segments = segmentsAt(history, state.event);
        if (changed.has('event') || changed.has('history')) this.segment = null;
        this.drawReasons(state);
        this.draw();
        this.drawSide(state);
        this.drawList(state);
    }

    drawReasons(state) {
        const { history } = this;
        const refusal = refusalAt(history, state.event);
        const sentences = refusal
            ? refusalSentences(history, refusal)
            : [eventSentence(history, state.event), ...choiceSentences(history, state.event)];
        const sums = `${memorySums(history, state.event)}; ${liveSentence(history, state.event)}.`;
        const shared = this.segments.reduce((sum, segment) => sum + segment.shared, 0);
        replaceChildren(
            this.text,
            element('p', { class: refusal ? 'bad' : null }, sentences.slice(0, 1).join(' '), ' ', sums),
            shared > 0 &&
                element(
                    'p',
                    { class: 'bad' },
                    `${formatBytes(shared)} belong to two live blocks at once: the second is the lower half of its bar.`,
                ),
            sentences.length > 1 &&
                element(
                    'ul',
                    {},
                    sentences.slice(1).map((sentence) => element('li', {}, sentence)),
                ),
        );
    }

    draw() {
        const width = this.area.clientWidth;
        if (!width || !this.segments) return;
        this.layout = layoutSegments(this.segments, width - 2);
        const ratio = Math.min(window.devicePixelRatio || 1, 2);
        const height = Math.min(Math.max(this.layout.height, 40), 8000);
        this.canvas.width = width * ratio;
        this.canvas.height = height * ratio;
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        const context = this.canvas.getContext('2d');
        context.scale(ratio, ratio);
        const { patterns } = this.app.state;
        this.patterns.checked = Boolean(patterns);
        this.paint(new CanvasPainter(context), patterns);
        this.drawLegend();
        this.canvas.setAttribute(
            'aria-label',
            `Segments at ${this.history.eventName(this.app.state.event)}: ${plural(this.segments.length, 'segment')}. ` +
                'The table below lists them.',
        );
    }

    // The colours that live blocks have here.
    liveLegend() {
        const { history, colours } = this;
        const seen = new Set(
            history.liveBlocks(this.app.state.event).map((block) => colours.classes[block] - CLASS_FIRST),
        );
        return colours.legend.filter(({ index }) => seen.has(index));
    }

    legendItems(patterns) {
        return legendItems([this.liveLegend()], patterns, this.history.hasReserved, 'free');
    }

    drawLegend() {
        const items = this.legendItems(this.app.state.patterns);
        replaceChildren(this.legend, legendEntries(items), element('span', { class: 'soft' }, this.scaleSentence()));
    }

    paint(painter, patterns) {
        const colours = themeColours();
        const { layout, history } = this;
        painter.rect(0, 0, layout.width + 2, Math.max(layout.height, 40), colours.ground);
        for (const group of layout.groups) {
            const names = [
                history.info.streams?.[group.stream] ?? `stream ${group.stream}`,
                `${history.info.pools?.[group.pool] ?? group.pool} pool`,
            ];
            painter.text(
                `${names.map((name) => shortText(name, 40)).join(' · ')}: ${plural(group.count, 'segment')}, ${formatBytes(group.bytes)}, ` +
                    `${formatBytes(group.used)} used`,
                0,
                group.y + 14,
                colours.soft,
                { clip: layout.width, cut: 'end' },
            );
        }
        if (!layout.bars.length)
            painter.text(
                this.history.hasReserved ? 'No segment is there.' : 'The recorder wrote no segments.',
                0,
                14,
                colours.soft,
            );
        for (const bar of layout.bars) this.paintBar(painter, bar, colours, patterns);
    }

    paintBar(painter, bar, colours, patterns) {
        const { layout } = this;
        const { segment } = bar;
        const chosen = this.segment === segment.index;
        for (const part of partsOf(layout, bar, 0, segment.size))
            painter.rect(part.x, part.y, part.width, part.height, reservedFill(colours));
        let drawn = -1; // a pixel that is full needs no second block
        for (const piece of segment.pieces) {
            if (piece.block === null) continue;
            const end = bar.start + (piece.address - segment.address + piece.size) / layout.perPixel;
            if (end - drawn < 0.5 && !piece.shared) continue;
            drawn = Math.max(drawn, end);
            const parts = partsOfPiece(layout, bar, piece);
            const named = parts.find((part) => part.width > SIZE_WIDTH);
            const fill = this.fillOf(piece.block, colours, patterns);
            for (const part of parts)
                this.paintBlock(painter, piece, part, { isNamed: part === named, colours, fill });
        }
        for (const part of partsOf(layout, bar, 0, segment.size))
            painter.frame(
                part.x + 0.5,
                part.y + 0.5,
                Math.max(part.width - 1, 1),
                part.height - 1,
                chosen ? colours.accent : colours.soft,
                chosen ? 2 : 1,
            );
    }

    fillOf(block, colours, patterns) {
        const dim = this.found && !this.found.mask[block] ? DIMMED : 0;
        return blockFill(colours, this.colours.classes[block] - CLASS_FIRST, patterns, dim);
    }

    paintBlock(painter, { block, size, shared, covered }, part, { isNamed, colours, fill }) {
        const { history } = this;
        const { colour } = fill;
        const { block: selected, event } = this.app.state;
        painter.rect(part.x, part.y, part.width, part.height, fill);
        if (part.width > 3)
            painter.frame(
                part.x + 0.5,
                part.y + 0.5,
                part.width - 1,
                part.height - 1,
                mixColours(colour, colours.ground, 0.5),
            );
        if (shared) painter.frame(part.x, part.y, part.width, part.height, colours.bad, 2);
        if (isPending(history, block, event)) {
            painter.line(part.x, part.y, part.x + part.width, part.y + part.height, colours.text);
            painter.line(part.x, part.y + part.height, part.x + part.width, part.y, colours.text);
        }
        if (isNamed) {
            const name = history.nameOf(block);
            const text = name === null ? formatBytes(size) : `${formatBytes(size)} ${shortText(name, 24)}`;
            const middle = part.y + part.height / (covered ? 4 : 2);
            const place = { size: 10, clip: part.width - 6, ground: colour };
            painter.text(text, part.x + 4, middle, inkOn(colour), place);
        }
        if (block === selected) painter.frame(part.x, part.y, part.width, part.height, colours.text, 3);
    }

    hover(x, y) {
        const found = this.layout && x >= 0 ? pieceAt(this.layout, x, y) : null;
        this.tip.hidden = !found;
        if (!found) return;
        const { piece, segment } = found;
        const lines =
            piece.block === null
                ? [
                      `Free: ${formatBytes(piece.size)} at ${formatAddress(this.history, piece.address)}`,
                      `in a ${KIND_NAMES[segment.kind] ?? ''} segment of ${formatBytes(segment.size)}`,
                  ]
                : blockSummary(this.history, piece.block);
        replaceChildren(
            this.tip,
            lines.map((line) => element('div', {}, line)),
        );
        this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.area.clientWidth - this.tip.offsetWidth - 4))}px`;
        this.tip.style.top = `${y + 16}px`;
    }

    pick(x, y) {
        const found = pieceAt(this.layout, x, y);
        if (!found) return;
        this.segment = found.segment.index;
        this.app.set({ block: found.piece.block });
        this.draw();
        this.drawSide({ ...this.app.state, block: found.piece.block });
    }

    drawSide(state) {
        const segment = this.segments.find(({ index }) => index === this.segment);
        replaceChildren(
            this.side,
            segment &&
                element(
                    'section',
                    { class: 'details', 'aria-label': 'Details of the segment' },
                    element('h3', {}, `Segment ${formatCount(segment.index)}`),
                    element(
                        'p',
                        {},
                        `${formatAddress(this.history, segment.address)}, ${KIND_NAMES[segment.kind] ?? 'unknown kind'}`,
                    ),
                    segmentSentences(this.history, segment, state.event).map((sentence) =>
                        element('p', {}, sentence),
                    ),
                ),
            state.block !== null &&
                state.block !== undefined &&
                blockDetails(this.app, this.history, state.block),
            !segment &&
                (state.block === null || state.block === undefined) &&
                element(
                    'p',
                    { class: 'note' },
                    'Click a segment, a block or a gap, or a row of the table, to see why it is there.',
                ),
        );
    }

    drawList(state) {
        const { history } = this;
        const rows = this.segments.map((segment) => [
            segment.index,
            segment.size,
            segment.used,
            segment.size - segment.used,
            segment.pieces.filter((piece) => piece.block !== null).length,
            KIND_NAMES[segment.kind] ?? '',
            shortText(history.info.streams?.[segment.stream] ?? String(segment.stream), 40),
            shortText(history.info.pools?.[segment.pool] ?? String(segment.pool), 40),
        ]);
        const table = {
            title: `Segments at ${history.eventName(state.event)}`,
            rows,
            columns: [
                { name: 'Segment', unit: 'count' },
                { name: 'Size', unit: 'B' },
                { name: 'Used', unit: 'B' },
                { name: 'Free', unit: 'B' },
                { name: 'Blocks', unit: 'count' },
                { name: 'Kind', unit: 'text' },
                { name: 'Stream', unit: 'text' },
                { name: 'Pool', unit: 'text' },
            ],
        };
        const onrow = ([index]) => {
            this.segment = index;
            this.draw();
            this.drawSide(this.app.state);
        };
        if (this.table) this.table.options.onrow = onrow;
        replaceChildren(this.list, (this.table = new DataTable(table, { shown: 12, onrow })).node);
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || !this.history) return false;
        const { app, history } = this;
        const at = app.state.event;
        const go = (to) => app.set({ event: Math.min(Math.max(to, 0), history.last) });
        const actions = {
            ArrowLeft: () => go(at - (event.shiftKey ? 10 : 1)),
            ArrowRight: () => go(at + (event.shiftKey ? 10 : 1)),
            Home: () => go(0),
            End: () => go(history.last),
            p: () => go(history.peak),
            n: () => go(this.allocationAfter(at)),
            b: () => go(this.allocationBefore(at)),
            ArrowUp: () => this.stepBlock(-1),
            ArrowDown: () => this.stepBlock(1),
            Escape: () => app.set({ block: null, query: null, line: null, stack: null, finding: null }),
        };
        const action = actions[event.key] ?? actions[event.key.toLowerCase()];
        if (!action) return false;
        action();
        return true;
    }

    allocationAfter(event) {
        const next = this.history.allocatedUpTo(event);
        return next < this.history.blocks ? this.history.blockAlloc[next] : event;
    }

    allocationBefore(event) {
        const before = this.history.allocatedUpTo(event - 1) - 1;
        return before >= 0 ? this.history.blockAlloc[before] : event;
    }

    // The next live block in order of address.
    stepBlock(step) {
        const blocks = this.segments
            .flatMap(({ pieces }) => pieces)
            .filter((piece) => piece.block !== null)
            .map((piece) => piece.block);
        if (!blocks.length) return;
        const at = blocks.indexOf(this.app.state.block);
        this.app.set({ block: blocks[Math.min(Math.max(at + step, 0), blocks.length - 1)] });
    }

    picture() {
        if (!this.layout) return null;
        const { history, layout } = this;
        const { event } = this.app.state;
        return {
            width: layout.width + 2,
            height: Math.max(layout.height, 40),
            paint: (painter) => this.paint(painter, true), // nobody can point at a block there
            heading: shortText(history.info.name, 120),
            notes: [
                `The allocator at ${history.eventName(event)}: ${memorySums(history, event)}; ${liveSentence(history, event)}.`,
                this.scaleSentence(),
            ],
            legend: this.legendItems(true),
        };
    }

    scaleSentence() {
        return `Each bar is a segment; a whole row is ${formatBytes(Math.round(this.layout.rowBytes))}.`;
    }
}
