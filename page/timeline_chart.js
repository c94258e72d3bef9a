// The active memory timeline of one history on a canvas: keeps the rasters that are shown, draws, zooms and pans.

import {
    CLASS_CACHED,
    CLASS_FIRST,
    HIGHLIGHT,
    TimelineRaster,
    areaOfBlock,
    blockAt,
    layoutTimeline,
    rectanglesOf,
} from './timeline_layout.js';
import {
    GUTTER,
    drawAxes,
    drawBandNames,
    drawBlock,
    drawCursor,
    drawMarks,
    marksOf,
} from './timeline_axis.js';
import { GlRasterPainter, hasGpu } from './raster_gl.js';
import { CanvasRasterPainter } from './raster_2d.js';
import { CanvasPainter } from './painter.js';
import { blockFill, reservedFill } from './patterns.js';
import { colourParts, themeColours } from './theme.js';
import { element } from './dom.js';

const SLICE = 6; // ms of a frame for computing a raster while the reader moves
const REST = 120; // ms without movement until the raster is made sharp
const DIM = 0.78; // how far what is not highlighted goes to the ground
const MIN_EVENTS = 4; // the deepest zoom

export class TimelineChart {
    // HANDLERS: { view(view), frame(chart) }: told after a zoom or pan, and after each drawing.
    constructor(label, handlers) {
        this.handlers = handlers;
        this.canvas = element('canvas', { class: 'raster', 'aria-hidden': 'true' });
        this.overlay = element('canvas', {
            class: 'overlay',
            tabindex: '0',
            role: 'img',
            'aria-label': label,
        });
        this.node = element('div', { class: 'chart' }, this.canvas, this.overlay);
        this.painter = choosePainter(this);
        this.history = null;
        this.event = this.span = this.hover = this.selected = null;
        this.pixelRatio = Math.min(window.devicePixelRatio || 1, 2);
        new ResizeObserver(() => this.resize()).observe(this.node);
    }

    // COLOURS as colourBlocks gives them; MASK marks the highlighted blocks or is null; TOP: the scale's upper end.
    setHistory(history, colours, mask, top) {
        const same = history === this.history;
        this.history = history;
        this.colours = colours;
        this.mask = mask;
        this.dimmed = Boolean(mask);
        this.classes = mask
            ? colours.classes.map((value, i) => (mask[i] ? value | HIGHLIGHT : value))
            : colours.classes;
        this.top = (top ?? history.top) * 1.03;
        this.marks = marksOf(history);
        this.full = { from: 0, to: history.last + 1, bottom: 0, top: this.top };
        if (!same || !this.view) this.view = { ...this.full };
        this.overview = null;
        this.raster = null;
        if (this.plot?.width > 0) this.drawFirst();
    }

    resize() {
        const { clientWidth, clientHeight } = this.node;
        if (!clientWidth || !clientHeight) return;
        const { left, right, top, bottom } = GUTTER;
        const plot = {
            x: left,
            y: top,
            width: clientWidth - left - right,
            height: clientHeight - top - bottom,
        };
        if (this.plot && this.plot.width === plot.width && this.plot.height === plot.height) return;
        this.plot = plot;
        this.sizeCanvas(this.overlay, clientWidth, clientHeight);
        this.sizeCanvas(this.canvas, plot.width, plot.height);
        this.canvas.style.left = `${left}px`;
        this.canvas.style.top = `${top}px`;
        this.overview = this.raster = null;
        if (this.history) this.drawFirst();
    }

    sizeCanvas(canvas, width, height) {
        canvas.width = Math.max(1, Math.round(width * this.pixelRatio));
        canvas.height = Math.max(1, Math.round(height * this.pixelRatio));
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
    }

    x(event) {
        return this.plot.x + ((event - this.view.from) / (this.view.to - this.view.from)) * this.plot.width;
    }

    y(bytes) {
        const { view, plot } = this;
        return plot.y + ((view.top - bytes) / (view.top - view.bottom)) * plot.height;
    }

    eventAt(x) {
        const { view, plot } = this;
        return view.from + ((x - plot.x) / plot.width) * (view.to - view.from);
    }

    bytesAt(y) {
        const { view, plot } = this;
        return view.top - ((y - plot.y) / plot.height) * (view.top - view.bottom);
    }

    // The event that the column at X shows, which with many events in a pixel is the highest of them.
    momentAt(x) {
        const event = this.eventAt(x);
        const raster = this.covers(this.raster) ? this.raster : this.overview;
        const dense = raster && (raster.to - raster.from) / raster.columns > 1;
        const moment = dense ? raster.moments[raster.columnOf(event)] : Math.floor(event);
        return Math.min(Math.max(moment, 0), this.history.last);
    }

    // { block, bottom, top, event } under a point of the overlay, or null.
    blockAtPoint(x, y) {
        const { plot } = this;
        if (x < plot.x || x > plot.x + plot.width || y < plot.y || y > plot.y + plot.height) return null;
        const event = this.momentAt(x);
        const place = blockAt(this.history, event, this.bytesAt(y));
        return place && { ...place, event };
    }

    setView(view) {
        const next = limitedView(view, this.full);
        const { from, to, bottom, top } = this.view;
        if (next.from === from && next.to === to && next.bottom === bottom && next.top === top) return;
        this.view = next;
        this.moved = performance.now();
        this.schedule();
    }

    zoom(factor, x) {
        const { from, to } = this.view;
        const at = this.eventAt(x ?? this.plot.x + this.plot.width / 2);
        this.move({ from: at - (at - from) * factor, to: at + (to - at) * factor });
    }

    zoomHeight(factor, y) {
        const { bottom, top } = this.view;
        const at = this.bytesAt(y);
        this.move({ bottom: Math.max(0, at - (at - bottom) * factor), top: at + (top - at) * factor });
    }

    pan(pixelsX, pixelsY) {
        const { view, plot, full } = this;
        const events = (-pixelsX / plot.width) * (view.to - view.from);
        const bytes = ((pixelsY ?? 0) / plot.height) * (view.top - view.bottom);
        const shift = Math.min(Math.max(events, full.from - view.from), full.to - view.to);
        const lift = Math.min(Math.max(bytes, full.bottom - view.bottom), full.top - view.top);
        this.move({
            from: view.from + shift,
            to: view.to + shift,
            bottom: view.bottom + lift,
            top: view.top + lift,
        });
    }

    move(change) {
        this.setView({ ...this.view, ...change });
        this.handlers.view?.(this.view);
    }

    // From the ground, for keys: they have no place.
    zoomHeightByKey(factor) {
        this.zoomHeight(factor, this.plot.y + this.plot.height);
    }

    panHeightByKey(share) {
        this.pan(0, this.plot.height * share);
    }

    // What is shown, as an address has it: null where it is all.
    range() {
        const { view, full } = this;
        if (view.from === full.from && view.to === full.to) return null;
        const from = Math.round(view.from);
        return [from, Math.max(Math.round(view.to), from + 1)];
    }

    height() {
        const { view, full } = this;
        if (view.bottom === full.bottom && view.top === full.top) return null;
        return [Math.round(view.bottom), Math.round(view.top)];
    }

    show(range, height) {
        const { full } = this;
        const [from, to] = range ?? [full.from, full.to];
        const [bottom, top] = height ?? [full.bottom, full.top];
        this.setView({ from, to, bottom, top });
    }

    isFull() {
        const { view, full } = this;
        return (
            view.from === full.from &&
            view.to === full.to &&
            view.bottom === full.bottom &&
            view.top === full.top
        );
    }

    // Computes the whole picture at once, for the first drawing.
    drawFirst() {
        this.overview = this.newRaster(this.full, 0);
        drain(layoutTimeline(this.overview, this.history, this.classes));
        this.painter.upload('overview', this.overview);
        this.moved = 0;
        this.task = null;
        this.draw();
        if (!this.isFull()) this.schedule();
    }

    newRaster(view, margin) {
        const { plot, pixelRatio, full } = this;
        const width = view.to - view.from;
        const from = Math.max(full.from, view.from - width * margin),
            to = Math.min(full.to, view.to + width * margin);
        const pixels = (plot.width * pixelRatio * (to - from)) / width;
        return new TimelineRaster({
            from,
            to,
            bottom: view.bottom,
            top: view.top,
            view: { ...view },
            columns: Math.max(1, Math.min(Math.round(pixels), this.painter.limit())),
            rows: Math.max(1, Math.round(plot.height * pixelRatio)),
        });
    }

    covers(raster) {
        const { view } = this;
        return (
            raster &&
            raster.from <= view.from &&
            raster.to >= view.to &&
            raster.bottom <= view.bottom &&
            raster.top >= view.top
        );
    }

    // Whether RASTER shows the view as sharp as the screen can.
    isSharp(raster) {
        if (!this.covers(raster)) return false;
        const width = (raster.view.to - raster.view.from) / (this.view.to - this.view.from);
        const height = (raster.view.top - raster.view.bottom) / (this.view.top - this.view.bottom);
        return Math.abs(width - 1) < 1e-6 && Math.abs(height - 1) < 1e-6;
    }

    schedule() {
        this.frame ??= requestAnimationFrame(() => {
            this.frame = null;
            if (!this.plot || !this.history) return; // not on the screen yet
            this.refine();
            this.draw();
        });
    }

    // While the reader moves, the raster of a new place is computed in slices of frames; the old one is stretched.
    refine() {
        if (this.isFull() || this.isSharp(this.raster)) {
            this.task = null;
            return;
        }
        const rests = performance.now() - this.moved > REST;
        const stale = !this.task || !this.covers(this.task.raster);
        const near = this.covers(this.raster) && zoomRatio(this.raster.view, this.view) < 1.6;
        if (stale && near && !rests) this.task = null;
        else if (stale || (rests && !this.isSharp(this.task.raster))) this.task = this.newTask();
        if (this.task) this.advance();
        this.schedule();
    }

    newTask() {
        const raster = this.newRaster(this.view, 0.5);
        return { raster, steps: layoutTimeline(raster, this.history, this.classes) };
    }

    advance() {
        const until = performance.now() + SLICE;
        while (performance.now() < until) {
            if (!this.task.steps.next().done) continue;
            this.raster = this.task.raster;
            this.painter.upload('detail', this.raster);
            this.task = null;
            return;
        }
    }

    style() {
        const colours = (this.themed = themeColours());
        const key = JSON.stringify([colours, this.dimmed, this.patterns]);
        if (key === this.styleKey) return this.lastStyle;
        this.styleKey = key;
        const blocks = colours.blocks.map(colourParts);
        while (blocks.length < 16) blocks.push([0, 0, 0]);
        this.lastStyle = {
            palette: blocks,
            ground: colourParts(colours.ground),
            cached: colourParts(colours.cached),
            dim: this.dimmed ? DIM : 0,
            patterns: Boolean(this.patterns),
        };
        return this.lastStyle;
    }

    draw() {
        if (!this.history || !this.plot || !this.overview) return;
        this.painter.begin(this.style());
        const sharp = this.raster && this.covers(this.raster);
        if (!sharp) this.painter.draw('overview', this.view);
        if (this.raster && !this.isFull()) this.painter.draw('detail', this.view);
        this.drawOverlay();
        this.handlers.frame?.(this);
    }

    drawOverlay() {
        const context = this.overlay.getContext('2d');
        context.setTransform(this.pixelRatio, 0, 0, this.pixelRatio, 0, 0);
        context.clearRect(0, 0, this.overlay.width, this.overlay.height);
        this.paintOverlay(new CanvasPainter(context), this.themed, !this.task && !this.dragging);
    }

    paintOverlay(painter, colours, names) {
        drawAxes(painter, this, colours);
        if (names) drawBandNames(painter, this.rasterShown(), colours);
        drawMarks(painter, this, colours);
        drawCursor(painter, this, colours);
        if (this.hover) drawBlock(painter, this, this.hover.block, colours.text, 1.5);
        if (this.selected !== null) drawBlock(painter, this, this.selected, colours.accent, 2.5);
    }

    // As areaOfBlock; kept, since each frame asks for the same one or two.
    areaOf(block, raster) {
        const known = this.areas?.find((one) => one.block === block && one.raster === raster);
        if (known) return known.area;
        const area = areaOfBlock(this.history, block, raster);
        this.areas = [{ block, raster, area }, ...(this.areas ?? [])].slice(0, 4);
        return area;
    }

    // The sharpest one that is ready and covers what is shown.
    rasterInView() {
        return !this.isFull() && this.covers(this.raster) ? this.raster : this.overview;
    }

    // This chart with the raster that is on the screen.
    rasterShown() {
        return Object.create(this, { raster: { value: this.isFull() ? this.overview : this.raster } });
    }

    // The same picture as vectors, for SVG, PNG and print: nobody can point at a block there, so it has patterns.
    paint(painter) {
        const colours = themeColours();
        const raster = this.newRaster(this.view, 0);
        drain(layoutTimeline(raster, this.history, this.classes));
        painter.rect(0, 0, this.node.clientWidth, this.node.clientHeight, colours.ground);
        const { plot } = this;
        const wide = plot.width / raster.columns,
            high = plot.height / raster.rows;
        const place = (r) => ({
            x: plot.x + r.column * wide,
            width: r.columns * wide,
            y: plot.y + plot.height - (r.row + r.rows) * high,
            height: r.rows * high,
        });
        painter.classes(rectanglesOf(raster), place, (value) => this.fillOf(value, colours));
        this.paintOverlay(painter, colours, true);
    }

    // What pictures fill a value of a raster with.
    fillOf(value, colours) {
        if ((value & 63) === CLASS_CACHED) return reservedFill(colours);
        const dim = this.dimmed && !(value & HIGHLIGHT) ? DIM : 0;
        return blockFill(colours, (value & 63) - CLASS_FIRST, true, dim);
    }
}

// The address may ask for one: #renderer=canvas or #renderer=webgl, as the tests do.
function choosePainter(chart) {
    const asked = /[#&]renderer=(canvas|webgl)\b/.exec(location.hash)?.[1];
    const painter = asked === 'webgl' || (!asked && hasGpu()) ? GlRasterPainter.create(chart.canvas) : null;
    return painter ?? new CanvasRasterPainter(chart.canvas);
}

function drain(steps) {
    while (!steps.next().done);
}

function zoomRatio(one, other) {
    const width = (one.to - one.from) / (other.to - other.from),
        height = (one.top - one.bottom) / (other.top - other.bottom);
    return Math.max(width, 1 / width, height, 1 / height);
}

function limitedView(view, full) {
    let { from, to, bottom, top } = view;
    const width = Math.min(
        Math.max(to - from, Math.min(MIN_EVENTS, full.to - full.from)),
        full.to - full.from,
    );
    const height = Math.min(Math.max(top - bottom, 4096), full.top - full.bottom);
    if (to - from !== width) {
        const middle = (from + to) / 2;
        from = middle - width / 2;
    }
    from = Math.min(Math.max(from, full.from), full.to - width);
    bottom = Math.min(Math.max(bottom, full.bottom), full.top - height);
    return { from, to: from + width, bottom, top: bottom + height };
}
