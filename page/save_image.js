// Saves what a view shows as SVG or PNG, with its title, what its scale is and its legend; and prints it.

import { CanvasPainter, SvgPainter } from './painter.js';
import { download, element } from './dom.js';
import { legendEntries } from './legend.js';
import { shortText } from './format.js';
import { themeColours } from './theme.js';

const FRAME = 12,
    HEADING = 22,
    LINE = 18,
    SWATCH = 24; // pixels

// A name of a file from a title of a stranger.
function fileName(title, view, ending) {
    const clean = title
        .replace(/[^A-Za-z0-9._-]+/g, '-')
        .replace(/^[-.]+|-+$/g, '')
        .slice(0, 60);
    return `${clean || 'gmd'}-${view}.${ending}`;
}

// The items of a legend in rows of WIDTH pixels: [{ item, x, row }].
function placeLegend(items, width, painter) {
    let x = 0,
        row = 0;
    return items.map((item) => {
        const room = SWATCH + 6 + Math.min(painter.widthOf(item.name), width / 2) + 16;
        if (x > 0 && x + room > width) {
            x = 0;
            row++;
        }
        const place = { item, x, row };
        x += room;
        return place;
    });
}

// Lines of at most WIDTH pixels.
function wrapped(text, width, painter) {
    const lines = [''];
    for (const word of text.split(' ')) {
        const longer = `${lines.at(-1)} ${word}`.trim();
        if (painter.widthOf(longer) <= width || lines.at(-1) === '') lines[lines.length - 1] = longer;
        else lines.push(word);
    }
    return lines;
}

// PICTURE of a view: { width, height, paint(painter), heading, notes: [sentence], legend: [{ name, fill }] }, as a
// picture of its own: heading and notes above, the legend below.
function framed(picture, title, measure) {
    const { width } = picture;
    const notes = picture.notes.flatMap((note) => wrapped(note, width, measure));
    const legend = placeLegend(picture.legend, width, measure);
    const top = FRAME + HEADING + notes.length * LINE + 4;
    const below = top + picture.height + FRAME / 2;
    const rows = legend.length ? legend.at(-1).row + 1 : 0;
    const size = { width: width + 2 * FRAME, height: top + picture.height + rows * LINE + 2 * FRAME };
    const heading = title.includes(picture.heading) ? title : `${title} · ${picture.heading}`;
    const paint = (painter) => {
        const colours = themeColours();
        painter.rect(0, 0, size.width, size.height, colours.ground);
        paintHead(painter, heading, notes, width, colours);
        painter.within(FRAME, top, () => picture.paint(painter));
        painter.within(FRAME, below, () => paintLegend(painter, legend, width, colours));
    };
    return { ...size, paint };
}

function paintHead(painter, heading, notes, width, colours) {
    const place = { clip: width, cut: 'end' };
    const middle = FRAME + HEADING / 2;
    painter.text(heading, FRAME, middle, colours.text, { ...place, size: 14, bold: true });
    notes.forEach((line, i) =>
        painter.text(line, FRAME, FRAME + HEADING + (i + 0.5) * LINE, colours.soft, place),
    );
}

function paintLegend(painter, legend, width, colours) {
    for (const { item, x, row } of legend) {
        painter.rect(x, row * LINE + 2, SWATCH, LINE - 6, item.fill);
        const place = { clip: width / 2 };
        painter.text(item.name, x + SWATCH + 6, (row + 0.5) * LINE - 1, colours.text, place);
    }
}

function drawn({ width, height, paint }) {
    const canvas = element('canvas', { width: width * 2, height: height * 2 });
    const context = canvas.getContext('2d');
    context.scale(2, 2);
    paint(new CanvasPainter(context));
    return canvas;
}

export function saveImage(view, title, format) {
    const picture = view.picture?.();
    if (!picture) return false;
    const whole = framed(picture, shortText(title, 120), new SvgPainter(0, 0));
    const name = fileName(title, view.name, format);
    if (format === 'svg') {
        const painter = new SvgPainter(whole.width, whole.height);
        whole.paint(painter);
        download(name, painter.toBlob());
    } else {
        drawn(whole).toBlob((blob) => download(name, blob));
    }
    return true;
}

// Paper is light and narrower than the screen, and nobody can point at a block there: while it is printed, a picture
// with patterns and its legend stand for each canvas.
export function preparePrint(views, current) {
    let pictures = [];
    window.addEventListener('beforeprint', () => {
        const view = views.find(({ name }) => name === current());
        const canvas = view?.root.querySelector('canvas.overlay, .segments canvas');
        const picture = canvas && view.picture?.();
        if (!picture) return;
        const image = element('img', {
            class: 'printed',
            alt: canvas.getAttribute('aria-label'),
            src: drawn(picture).toDataURL(),
        });
        const legend = element('div', { class: 'legend printed' }, legendEntries(picture.legend));
        canvas.parentElement.after(image, legend);
        pictures.push(image, legend);
    });
    window.addEventListener('afterprint', () => {
        for (const image of pictures) image.remove();
        pictures = [];
    });
}
