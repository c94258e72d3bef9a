// One way to draw for screen, PNG and SVG: rectangles, lines and texts. A rectangle is filled with a colour, or with a
// colour and its pattern as patterns.js has it: { colour, ink, kind }.

import { PATTERN_SIZE, inkRuns } from './patterns.js';

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

function fontOf(place) {
    return `${place?.bold ? '600 ' : ''}${place?.size ?? 11}px ${FONT}`;
}

// Whether FILL has ink of a pattern.
function isPatterned(fill) {
    return typeof fill !== 'string' && fill.kind > 0;
}

function nameOfFill({ colour, ink, kind }) {
    return `${kind} ${colour} ${ink}`;
}

// The rectangle [x, y, width, height] behind a text of WIDTH pixels: letters on a pattern are hard to read.
function groundOf(x, y, width, place) {
    const size = place.size ?? 11;
    const left = x - width * { start: 0, center: 0.5, end: 1 }[place.align ?? 'start'];
    return [left - 2, y - size / 2, width + 4, size];
}

function tileOf({ colour, ink, kind }) {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = PATTERN_SIZE;
    const context = canvas.getContext('2d');
    context.fillStyle = colour;
    context.fillRect(0, 0, PATTERN_SIZE, PATTERN_SIZE);
    context.fillStyle = ink;
    for (const [x, y, width] of inkRuns(kind)) context.fillRect(x, y, width, 1);
    return canvas;
}

export class CanvasPainter {
    constructor(context) {
        this.context = context;
        context.imageSmoothingEnabled = false; // patterns stay sharp where the canvas is scaled
        this.patterns = new Map();
    }

    styleOf(fill) {
        if (!isPatterned(fill)) return fill.colour ?? fill;
        const name = nameOfFill(fill);
        if (!this.patterns.has(name))
            this.patterns.set(name, this.context.createPattern(tileOf(fill), 'repeat'));
        return this.patterns.get(name);
    }

    // What DRAW paints has its origin at X and Y.
    within(x, y, draw) {
        this.context.save();
        this.context.translate(x, y);
        draw();
        this.context.restore();
    }

    widthOf(content, place) {
        this.context.font = fontOf(place);
        return this.context.measureText(content).width;
    }

    rect(x, y, width, height, fill, opacity) {
        const { context } = this;
        context.globalAlpha = opacity ?? 1;
        context.fillStyle = this.styleOf(fill);
        context.fillRect(x, y, width, height);
        context.globalAlpha = 1;
    }

    frame(x, y, width, height, stroke, lineWidth) {
        const { context } = this;
        context.strokeStyle = stroke;
        context.lineWidth = lineWidth ?? 1;
        context.strokeRect(x, y, width, height);
    }

    line(x1, y1, x2, y2, stroke, dash) {
        const { context } = this;
        context.strokeStyle = stroke;
        context.lineWidth = 1;
        context.setLineDash(dash ?? []);
        context.beginPath();
        context.moveTo(x1, y1);
        context.lineTo(x2, y2);
        context.stroke();
        context.setLineDash([]);
    }

    // A closed line through POINTS, [[x, y]].
    outline(points, stroke, lineWidth) {
        const { context } = this;
        context.strokeStyle = stroke;
        context.lineWidth = lineWidth;
        context.lineJoin = 'round';
        context.beginPath();
        for (const [x, y] of points) context.lineTo(x, y);
        context.closePath();
        context.stroke();
    }

    // PLACE: { align: 'start|center|end', size, bold, clip: width, cut: 'start|end', ground: colour behind the text }
    text(content, x, y, fill, place) {
        const { context } = this;
        context.font = fontOf(place);
        const shown = place?.clip ? this.clipped(content, place.clip, place.cut) : content;
        if (place?.ground && shown)
            this.rect(...groundOf(x, y, context.measureText(shown).width, place), place.ground);
        context.textAlign = place?.align ?? 'start';
        context.textBaseline = 'middle';
        context.fillStyle = fill;
        context.fillText(shown, x, y);
    }

    // CONTENT cut to WIDTH pixels. The end stays, it tells lines of one folder apart, unless CUT is 'end'.
    clipped(content, width, cut) {
        const { context } = this;
        if (context.measureText(content).width <= width) return content;
        const part = (length) =>
            cut === 'end' ? `${content.slice(0, length)}…` : `…${content.slice(content.length - length)}`;
        let low = 0,
            high = content.length;
        while (low < high) {
            const middle = (low + high + 1) >>> 1;
            if (context.measureText(part(middle)).width <= width) low = middle;
            else high = middle - 1;
        }
        return low > 1 ? part(low) : '';
    }

    classes(rectangles, transform, style) {
        const fills = new Map();
        for (const rectangle of rectangles) {
            const { x, y, width, height } = transform(rectangle);
            const { value } = rectangle;
            if (!fills.has(value)) fills.set(value, style(value));
            this.rect(x, y, width, height, fills.get(value));
        }
    }
}

function escapeXml(text) {
    return text.replace(/[<>&"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u001f]/g, ' ');
}

const hundredths = (value) => Math.round(value * 100) / 100;

export class SvgPainter {
    constructor(width, height) {
        this.width = width;
        this.height = height;
        this.parts = [];
        this.patterns = new Map(); // name of a fill -> { id, fill }
        this.measure = new CanvasPainter(document.createElement('canvas').getContext('2d'));
    }

    within(x, y, draw) {
        this.parts.push(`<g transform="translate(${hundredths(x)} ${hundredths(y)})">`);
        draw();
        this.parts.push('</g>');
    }

    widthOf(content, place) {
        return this.measure.widthOf(content, place);
    }

    attributeOf(fill) {
        if (!isPatterned(fill)) return fill.colour ?? fill;
        const name = nameOfFill(fill);
        if (!this.patterns.has(name))
            this.patterns.set(name, { id: `gmd-pattern-${this.patterns.size + 1}`, fill });
        return `url(#${this.patterns.get(name).id})`;
    }

    rect(x, y, width, height, fill, opacity) {
        const faint = opacity === undefined ? '' : ` fill-opacity="${opacity}"`;
        this.parts.push(
            `<rect x="${hundredths(x)}" y="${hundredths(y)}" width="${hundredths(width)}" height="${hundredths(height)}" ` +
                `fill="${this.attributeOf(fill)}"${faint}/>`,
        );
    }

    frame(x, y, width, height, stroke, lineWidth) {
        this.parts.push(
            `<rect x="${hundredths(x)}" y="${hundredths(y)}" width="${hundredths(width)}" height="${hundredths(height)}" ` +
                `fill="none" stroke="${stroke}" stroke-width="${lineWidth ?? 1}"/>`,
        );
    }

    line(x1, y1, x2, y2, stroke, dash) {
        this.parts.push(
            `<path d="M${hundredths(x1)} ${hundredths(y1)}L${hundredths(x2)} ${hundredths(y2)}" stroke="${stroke}" fill="none"` +
                `${dash ? ` stroke-dasharray="${dash.join(' ')}"` : ''}/>`,
        );
    }

    outline(points, stroke, lineWidth) {
        const path = points.map(([x, y]) => `${hundredths(x)} ${hundredths(y)}`).join('L');
        this.parts.push(
            `<path d="M${path}Z" stroke="${stroke}" stroke-width="${lineWidth}" stroke-linejoin="round" fill="none"/>`,
        );
    }

    text(content, x, y, fill, place) {
        const size = place?.size ?? 11;
        const anchor = { start: 'start', center: 'middle', end: 'end' }[place?.align ?? 'start'];
        this.measure.context.font = fontOf(place);
        const shown = place?.clip ? this.measure.clipped(content, place.clip, place.cut) : content;
        if (place?.ground && shown)
            this.rect(...groundOf(x, y, this.measure.widthOf(shown, place), place), place.ground);
        this.parts.push(
            `<text x="${hundredths(x)}" y="${hundredths(y + size * 0.35)}" fill="${fill}" font-size="${size}" ` +
                `text-anchor="${anchor}"${place?.bold ? ' font-weight="600"' : ''}>${escapeXml(shown)}</text>`,
        );
    }

    // Many rectangles of few values: one path for each value.
    classes(rectangles, transform, style) {
        const paths = new Map();
        for (const rectangle of rectangles) {
            const { x, y, width, height } = transform(rectangle);
            const { value } = rectangle;
            const path = `M${hundredths(x)} ${hundredths(y)}h${hundredths(width)}v${hundredths(height)}h${hundredths(-width)}z`;
            if (!paths.has(value)) paths.set(value, []);
            paths.get(value).push(path);
        }
        for (const [value, path] of paths)
            this.parts.push(`<path fill="${this.attributeOf(style(value))}" d="${path.join('')}"/>`);
    }

    toBlob() {
        const head =
            `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" ` +
            `viewBox="0 0 ${this.width} ${this.height}" font-family="sans-serif">`;
        const defs = `<defs>${[...this.patterns.values()].map(definitionOf).join('')}</defs>`;
        return new Blob([head, defs, ...this.parts, '<' + '/svg>'], { type: 'image/svg+xml' });
    }
}

function definitionOf({ id, fill: { colour, ink, kind } }) {
    const size = `width="${PATTERN_SIZE}" height="${PATTERN_SIZE}"`;
    const path = inkRuns(kind).map(([x, y, width]) => `M${x} ${y}h${width}v1h${-width}z`);
    return (
        `<pattern id="${id}" ${size} patternUnits="userSpaceOnUse"><rect ${size} fill="${colour}"/>` +
        `<path fill="${ink}" d="${path.join('')}"/></pattern>`
    );
}
