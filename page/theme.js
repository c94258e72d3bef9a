// Light or dark: what the system says until the reader chooses; canvases take their colours from the style sheet.

import { palette } from './colours.js';

const KEY = 'gmd-theme';

export function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

// A page opened from disk may be refused its storage; the choice then holds until it is closed.
export function restoreTheme() {
    try {
        const chosen = localStorage.getItem(KEY);
        if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
    } catch {
        /* without storage the system's choice stands */
    }
}

export function switchTheme() {
    const chosen = isDark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = chosen;
    try {
        localStorage.setItem(KEY, chosen);
    } catch {
        /* as above */
    }
}

export function onThemeChange(listener) {
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', listener);
}

// The colours of the style sheet by name.
export function themeColours() {
    const style = getComputedStyle(document.documentElement);
    const colours = { blocks: palette(isDark()) };
    for (const name of ['ground', 'panel', 'text', 'soft', 'rule', 'accent', 'bad', 'cached', 'good'])
        colours[name] = style.getPropertyValue(`--${name}`).trim();
    return colours;
}

// "#rrggbb" -> three parts of 1.
export function colourParts(hex) {
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
}

export function mixColours(one, other, share) {
    const a = colourParts(one),
        b = colourParts(other);
    const parts = a.map((value, i) => Math.round((value + (b[i] - value) * share) * 255));
    return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

// Black or white, whichever is easier to read on HEX.
export function inkOn(hex) {
    const [r, g, b] = colourParts(hex).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000000' : '#ffffff';
}
