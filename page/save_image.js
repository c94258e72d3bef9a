// Saves what a view shows as SVG or PNG, and prints it.

import { download, element } from './dom.js';

// A name of a file from a title of a stranger.
function fileName(title, view, ending) {
    const clean = title
        .replace(/[^A-Za-z0-9._-]+/g, '-')
        .replace(/^[-.]+|-+$/g, '')
        .slice(0, 60);
    return `${clean || 'gmd'}-${view}.${ending}`;
}

export function saveImage(view, title, format) {
    const picture = view.image?.(format === 'svg');
    if (!picture) return false;
    if (picture.painter) download(fileName(title, view.name, 'svg'), picture.painter.toBlob());
    else picture.canvas.toBlob((blob) => download(fileName(title, view.name, 'png'), blob));
    return true;
}

// Paper is light and narrower than the screen: while it is printed, a picture stands for each canvas.
export function preparePrint(views, current) {
    let pictures = [];
    window.addEventListener('beforeprint', () => {
        const view = views.find(({ name }) => name === current());
        const canvas = view?.root.querySelector('canvas.overlay, .segments canvas');
        const picture = canvas && view.image?.(false);
        if (!picture) return;
        const image = element('img', {
            class: 'printed',
            alt: canvas.getAttribute('aria-label'),
            src: picture.canvas.toDataURL(),
        });
        canvas.parentElement.after(image);
        pictures.push(image);
    });
    window.addEventListener('afterprint', () => {
        for (const image of pictures) image.remove();
        pictures = [];
    });
}
