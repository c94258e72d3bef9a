// The view "Flame graph": who holds the memory at the event, by stack or by line, or how that differs from another
// moment of this or of another history.

import { CanvasPainter } from './painter.js';
import { DataTable } from './data_table.js';
import { button, chooser, element, replaceChildren, setNames } from './dom.js';
import { flameTree, layoutFlame } from './flame_tree.js';
import { formatBytes, formatSignedBytes, shortText } from './format.js';
import { inkOn, mixColours, themeColours } from './theme.js';
import { groupingOf, linesAt, linesCompared } from './line_sums.js';

const FRAME_ROW = 20;

export class FlameView {
    constructor(app) {
        this.app = app;
        this.name = 'flame';
        this.canvas = element('canvas', { tabindex: '0', role: 'img' });
        this.tip = element('div', { class: 'tip', hidden: true });
        this.area = element('div', { class: 'segments' }, this.canvas, this.tip);
        this.text = element('div', { class: 'reasons', role: 'status' });
        this.list = element('div', { class: 'moment' });
        this.root = element(
            'div',
            { class: 'view flame' },
            this.controls(),
            this.area,
            element(
                'p',
                { class: 'note keys' },
                "Click or Enter: zoom into a frame. Keys: arrows move, Esc zooms out, T shows the frame's blocks in the timeline.",
            ),
            this.text,
            this.list,
        );
        this.canvas.addEventListener('pointermove', (event) => this.hover(event.offsetX, event.offsetY));
        this.canvas.addEventListener('pointerleave', () => this.hover(-1, -1));
        this.canvas.addEventListener('click', (event) =>
            this.zoomTo(this.barAt(event.offsetX, event.offsetY)?.node),
        );
        this.canvas.addEventListener('keydown', (event) => {
            if (this.key(event)) event.preventDefault();
        });
        new ResizeObserver(() => this.tree && this.draw()).observe(this.area);
    }

    controls() {
        const by = chooser(
            'By',
            [
                ['stack', 'Stack'],
                ['line', 'Line'],
            ],
            (value) => this.app.set({ by: value }),
        );
        this.by = by.select;
        const compared = chooser('Compared with', [], (value) => this.compare(value));
        this.compared = compared.select;
        const here = button('Compare from this event', () =>
            this.app.set({ from: this.app.state.event, fromHistory: this.app.state.history }),
        );
        return element(
            'div',
            { class: 'tools' },
            by.node,
            compared.node,
            here,
            button('Show in timeline', () => this.showBlocks()),
            button('Whole graph', () => this.zoomTo(this.tree)),
        );
    }

    compare(value) {
        if (value === '') this.app.set({ from: null, fromHistory: null });
        const [history, event] = value.split(':').map(Number);
        if (value !== '') this.app.set({ fromHistory: history, from: event });
    }

    moments(state) {
        const now = { history: this.app.history(), event: state.event };
        if (state.from === null || state.from === undefined) return [now];
        const history = this.app.history(state.fromHistory ?? state.history) ?? now.history;
        return [now, { history, event: Math.min(state.from, history.last) }];
    }

    update(state) {
        const history = this.app.history();
        if (!history) {
            replaceChildren(this.text, element('p', {}, 'These inputs have no memory history.'));
            return;
        }
        this.by.value = state.by;
        this.listMoments(state);
        const moments = this.moments(state);
        const key = [state.history, state.event, state.by, state.from, state.fromHistory].join();
        if (key !== this.shown) {
            this.shown = key;
            this.tree = flameTree(moments, state.by);
            this.focus = this.selected = this.tree;
            this.drawList(moments);
        }
        this.needle = (state.query ?? '').toLowerCase();
        this.draw();
    }

    listMoments(state) {
        const options = [['', 'nothing']];
        this.app.report.histories.forEach((known, i) => {
            for (const [event, what] of [
                [known.peak?.event, 'peak'],
                [known.events - 1, 'end'],
            ])
                if (event !== undefined) options.push([`${i}:${event}`, `${what} of ${known.name}`]);
        });
        const now =
            state.from === null || state.from === undefined
                ? ''
                : `${state.fromHistory ?? state.history}:${state.from}`;
        const chosen = this.app.history(state.fromHistory ?? state.history);
        if (!options.some(([value]) => value === now))
            options.push([now, `${chosen.eventName(state.from)} of ${chosen.info.name}`]);
        setNames(this.compared, options, now);
    }

    isDifference() {
        return this.app.state.from !== null && this.app.state.from !== undefined;
    }

    draw() {
        const width = this.area.clientWidth;
        if (!width || !this.tree) return;
        this.bars = layoutFlame(this.focus, 1 / width);
        const depth = this.bars.reduce((most, bar) => Math.max(most, bar.depth), 0) + 1;
        const ratio = Math.min(window.devicePixelRatio || 1, 2);
        this.canvas.width = width * ratio;
        this.canvas.height = Math.min(depth * FRAME_ROW, 8000) * ratio;
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${Math.min(depth * FRAME_ROW, 8000)}px`;
        const context = this.canvas.getContext('2d');
        context.scale(ratio, ratio);
        this.size = { width, height: depth * FRAME_ROW };
        this.paint(new CanvasPainter(context));
        replaceChildren(this.text, element('p', {}, this.sentence(this.selected)));
        this.canvas.setAttribute(
            'aria-label',
            `Flame graph. Selected: ${this.sentence(this.selected)} The table below lists the lines.`,
        );
    }

    paint(painter) {
        const colours = themeColours();
        painter.rect(0, 0, this.size.width, this.size.height, colours.ground);
        for (const bar of this.bars) {
            const x = bar.x * this.size.width,
                width = Math.max(bar.width * this.size.width - 1, 0.5),
                y = bar.depth * FRAME_ROW;
            const colour = this.colourOf(bar.node, colours);
            painter.rect(x, y, width, FRAME_ROW - 1, colour);
            if (bar.node === this.selected)
                painter.frame(x + 1, y + 1, width - 2, FRAME_ROW - 3, colours.text, 2);
            if (width > 30)
                painter.text(this.label(bar.node), x + 4, y + FRAME_ROW / 2, inkOn(colour), {
                    clip: width - 8,
                    bold: bar.node.user,
                    cut: this.isDifference() ? 'end' : 'start',
                });
        }
    }

    // In a difference the sign stands in the label, so that colour is not needed.
    label(node) {
        const name = shortText(node.name, 160);
        if (!this.isDifference()) return name;
        return `${formatSignedBytes(node.bytes[0] - node.bytes[1])}  ${name}`;
    }

    colourOf(node, colours) {
        if (this.needle && !node.name.toLowerCase().includes(this.needle))
            return mixColours(colours.blocks[11], colours.ground, 0.7);
        if (this.isDifference()) {
            const change = node.weight ? (node.bytes[0] - node.bytes[1]) / node.weight : 0;
            const share = 0.15 + 0.85 * Math.min(1, Math.abs(change));
            return change === 0
                ? mixColours(colours.blocks[11], colours.ground, 0.5)
                : mixColours(colours.ground, change > 0 ? colours.bad : colours.accent, share * 0.8);
        }
        return node.user
            ? colours.blocks[1]
            : mixColours(colours.blocks[0], colours.ground, node.children.size ? 0.55 : 0.35);
    }

    sentence(node) {
        const all = this.tree.bytes[0];
        const share = all ? ` (${((node.bytes[0] / all) * 100).toFixed(1)} %)` : '';
        const before = this.isDifference()
            ? `, ${formatBytes(node.bytes[1])} at the other moment, ${formatSignedBytes(node.bytes[0] - node.bytes[1])}`
            : '';
        return `${shortText(node.name, 300)}: ${formatBytes(node.bytes[0])}${share}${before}.`;
    }

    barAt(x, y) {
        const depth = Math.floor(y / FRAME_ROW);
        return this.bars?.find(
            (bar) =>
                bar.depth === depth &&
                bar.x * this.size.width <= x &&
                x < (bar.x + bar.width) * this.size.width,
        );
    }

    hover(x, y) {
        const bar = x >= 0 ? this.barAt(x, y) : null;
        this.tip.hidden = !bar;
        if (!bar) return;
        replaceChildren(this.tip, this.sentence(bar.node));
        this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.area.clientWidth - this.tip.offsetWidth - 4))}px`;
        this.tip.style.top = `${y + 16}px`;
    }

    zoomTo(node) {
        if (!node) return;
        this.focus = this.selected = node;
        this.draw();
    }

    showBlocks() {
        const { stack, line } = this.selected ?? {};
        if (line) this.app.set({ view: 'timeline', line, stack: null, query: null });
        else if (stack !== null && stack !== undefined)
            this.app.set({ view: 'timeline', stack, line: null, query: null });
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || !this.selected) return false;
        const actions = {
            ArrowUp: () => this.select(this.selected.parent),
            ArrowDown: () => this.select(childrenOf(this.selected)[0]),
            ArrowLeft: () => this.select(siblingOf(this.selected, -1)),
            ArrowRight: () => this.select(siblingOf(this.selected, 1)),
            Enter: () => this.zoomTo(this.selected),
            Escape: () => this.zoomTo(this.focus.parent ?? this.tree),
            t: () => this.showBlocks(),
        };
        const action = actions[event.key] ?? actions[event.key.toLowerCase()];
        if (!action) return false;
        action();
        return true;
    }

    select(node) {
        if (!node) return;
        this.selected = node;
        this.draw();
    }

    drawList(moments) {
        const [now, before] = moments;
        const grouping = groupingOf(now.history);
        const lines = linesAt(now.history, now.event);
        const table = before
            ? {
                  title: `By ${grouping.word.toLowerCase()}: ${now.history.eventName(now.event)} of ${shortText(now.history.info.name, 60)} and ${before.history.eventName(before.event)} of ${shortText(before.history.info.name, 60)}`,
                  columns: [
                      { name: grouping.word, unit: 'text' },
                      { name: 'Change', unit: '+B' },
                      { name: 'Now', unit: 'B' },
                      { name: 'There', unit: 'B' },
                  ],
                  rows: linesCompared(linesAt(before.history, before.event), lines).map(
                      ({ name, one, other }) => [name, other - one, other, one],
                  ),
              }
            : {
                  title: `By ${grouping.word.toLowerCase()} at ${now.history.eventName(now.event)}`,
                  columns: [
                      { name: grouping.word, unit: 'text' },
                      { name: 'Bytes', unit: 'B' },
                      { name: 'Blocks', unit: 'count' },
                  ],
                  rows: lines.map(({ name, bytes, count }) => [name, bytes, count]),
              };
        replaceChildren(
            this.list,
            new DataTable(table, {
                shown: 20,
                onrow: ([line]) => this.app.set({ view: 'timeline', ...grouping.changes(line) }),
            }).node,
        );
    }

    picture() {
        if (!this.tree || !this.size) return null;
        const [now, before] = this.moments(this.app.state);
        const of = ({ history, event }) =>
            `${history.eventName(event)} of ${shortText(history.info.name, 80)}`;
        return {
            ...this.size,
            paint: (painter) => this.paint(painter),
            heading: before ? `${of(now)}, compared with ${of(before)}` : of(now),
            notes: [`The whole width: ${this.sentence(this.focus)}`],
            legend: this.legendItems(),
        };
    }

    legendItems() {
        const colours = themeColours();
        const item = (name, node) => ({ name, fill: this.colourOf(node, colours) });
        const node = { name: this.needle, bytes: [0, 0], weight: 1, user: false, children: new Map() };
        return this.isDifference()
            ? [
                  item('more than at the other moment', { ...node, bytes: [1, 0] }),
                  item('less', { ...node, bytes: [0, 1] }),
                  item('the same', node),
              ]
            : [item('frames of your own', { ...node, user: true }), item('of libraries', node)];
    }
}

function childrenOf(node) {
    return [...node.children.values()].sort((a, b) => b.weight - a.weight);
}

function siblingOf(node, step) {
    if (!node.parent) return null;
    const siblings = childrenOf(node.parent);
    return siblings[siblings.indexOf(node) + step];
}
