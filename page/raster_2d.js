// Shows rasters of the timeline on a plain canvas where there is no WebGL2: each raster becomes an image once, which is
// then stretched and moved. The patterns are part of the image.

import { CLASS_CACHED, CLASS_FIRST, EDGE, HIGHLIGHT } from './timeline_layout.js';
import { INK_SHARE, RESERVED, hasInk } from './patterns.js';

function mix(a, b, share) {
    return a.map((value, i) => value + (b[i] - value) * share);
}

function packed(color) {
    const [r, g, b] = color.map((value) => Math.round(Math.min(Math.max(value, 0), 1) * 255));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// What each value of a raster looks like: plain and where its pattern has ink.
function lookUp(style) {
    const plain = new Uint32Array(256).fill(packed(style.ground));
    const inked = plain.slice();
    for (let value = 0; value < 256; value++) {
        const index = (value & 63) - CLASS_FIRST;
        if ((value & 63) === CLASS_CACHED) {
            plain[value] = packed(mix(style.ground, style.cached, RESERVED.colour));
            inked[value] = packed(mix(style.ground, style.cached, RESERVED.ink));
        }
        if (index < 0 || index >= style.palette.length) continue;
        let color = style.palette[index];
        let ink = style.patterns ? color.map((part) => part * INK_SHARE) : color;
        const edge = value & EDGE ? 0.45 : 0;
        const dim = value & HIGHLIGHT ? 0 : style.dim;
        plain[value] = packed(mix(mix(color, style.ground, edge), style.ground, dim));
        inked[value] = packed(mix(mix(ink, style.ground, edge), style.ground, dim));
    }
    return { plain, inked };
}

function imageOf(raster, style) {
    const { columns, rows, pixels } = raster;
    const image = new ImageData(columns, rows);
    const out = new Uint32Array(image.data.buffer);
    const { plain, inked } = lookUp(style);
    for (let c = 0; c < columns; c++) {
        for (let row = 0; row < rows; row++) {
            const value = pixels[c * rows + row];
            const y = rows - 1 - row;
            const index = (value & 63) - CLASS_FIRST;
            const kind = index === CLASS_CACHED - CLASS_FIRST ? RESERVED.kind : index;
            out[y * columns + c] = kind > 0 && hasInk(kind, c, y) ? inked[value] : plain[value];
        }
    }
    return image;
}

export class CanvasRasterPainter {
    constructor(canvas) {
        this.canvas = canvas;
        this.context = canvas.getContext('2d', { alpha: false });
        this.name = 'canvas';
        this.slots = new Map();
    }

    limit() {
        return 8192;
    }

    renderer() {
        return 'canvas 2D';
    }

    upload(slot, raster) {
        const canvas = document.createElement('canvas');
        canvas.width = raster.columns;
        canvas.height = raster.rows;
        this.slots.set(slot, { canvas, raster, style: null });
    }

    begin(style) {
        this.style = style;
        this.context.fillStyle = `rgb(${style.ground.map((v) => Math.round(v * 255)).join(' ')})`;
        this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    }

    draw(slot, view) {
        const entry = this.slots.get(slot);
        const { raster, canvas } = entry;
        if (entry.style !== this.style) {
            canvas.getContext('2d').putImageData(imageOf(raster, this.style), 0, 0);
            entry.style = this.style;
        }
        const { width, height } = this.canvas;
        const x = (event) => ((event - view.from) / (view.to - view.from)) * width;
        const y = (bytes) => ((view.top - bytes) / (view.top - view.bottom)) * height;
        this.context.imageSmoothingEnabled = false;
        this.context.drawImage(
            canvas,
            x(raster.from),
            y(raster.top),
            x(raster.to) - x(raster.from),
            y(raster.bottom) - y(raster.top),
        );
    }
}
