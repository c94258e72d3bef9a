// page_compare.mjs FOLDER [--viewer FILE --modules FOLDER] HISTORY... - bench/page_compare runs it and says what it is.
import { execFileSync, spawnSync } from 'node:child_process';
import {
    closeSync,
    createReadStream,
    openSync,
    readFileSync,
    statSync,
    writeFileSync,
    writeSync,
} from 'node:fs';
import { createGunzip } from 'node:zlib';
import { pipeline } from 'node:stream/promises';
import { join, basename } from 'node:path';
import { cpus, loadavg } from 'node:os';
import { pathToFileURL } from 'node:url';
import { launchBrowser, openDrawn } from './chromium.mjs';

const TRIES = 3, // the best of them counts: other work on the machine makes all others worse
    SECONDS = 3, // of each motion
    PATIENCE = 180000, // ms until a page is taken to have failed
    LONGEST = 5e8; // bytes of a page with its snapshot: what a string of the browser holds, about

function readArguments([folder, ...rest]) {
    const options = { folder, histories: [] };
    while (rest.length) {
        const word = rest.shift();
        if (word === '--viewer' || word === '--modules') options[word.slice(2)] = rest.shift();
        else options.histories.push(word);
    }
    return options;
}

function gmd(...words) {
    try {
        execFileSync('gmd', words, { stdio: ['ignore', 'ignore', 'inherit'] });
    } catch (error) {
        if (error.status !== 1) throw error; // 1: a finding
    }
}

// Seconds of processor time, which other work on the machine changes little.
function processorTime(...words) {
    const script = 'TIMEFORMAT="%U %S"; time gmd "$@" 2>/dev/null || [ $? -eq 1 ]';
    const { status, stderr } = spawnSync('bash', ['-c', script, 'gmd', ...words], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`gmd ${words.join(' ')} ended with ${status}`);
    const [user, system] = stderr.trim().split(' ').map(Number);
    return user + system;
}

// The unpacked history, so that both read the same bytes.
async function unpacked(history, folder) {
    if (/^\d+$/.test(history)) {
        const path = join(folder, `resnet50-${history}.pickle`);
        gmd('run', 'resnet50', `iterations=${history}`, '--snapshot', path, '-q');
        return path;
    }
    if (!history.endsWith('.gz')) return history;
    const path = join(folder, basename(history, '.gz'));
    const out = openSync(path, 'w');
    await pipeline(createReadStream(history), createGunzip(), async (source) => {
        for await (const chunk of source) writeSync(out, chunk);
    });
    closeSync(out);
    return path;
}

// The page that torch 2.x's _memory_viz.trace_plot() writes, in which the snapshot lies as base64.
function writeViewerPage(path, page) {
    const out = openSync(page, 'w');
    writeSync(
        out,
        '<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type="module">\n' +
            'import {add_local_files} from "https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js"\n' +
            'const local_files = [{"name": "snapshot.pickle", "base64": "',
    );
    const bytes = readFileSync(path);
    const chunk = 3 << 20; // whole groups of three bytes
    for (let at = 0; at < bytes.length; at += chunk)
        writeSync(out, bytes.subarray(at, at + chunk).toString('base64'));
    writeSync(
        out,
        '"}]\nadd_local_files(local_files, "Active Memory Timeline")\n</script>\n</body>\n</html>\n',
    );
    closeSync(out);
}

// The viewer by itself, as pytorch.org/memory_viz is: a file is chosen in it.
function writeEmptyPage(page) {
    writeFileSync(
        page,
        '<!DOCTYPE html>\n<html><body><script type="module" src="https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js"></script></body></html>\n',
    );
}

// Nothing comes from the network: MemoryViz.js is the file given, each module of d3 one that npm has installed.
async function serve(context, { viewer, modules, folder }) {
    await context.route(/^https:/, (route) => {
        const url = route.request().url();
        if (url.endsWith('/MemoryViz.js'))
            return route.fulfill({ path: viewer, contentType: 'text/javascript' });
        const [, name] = /(?:npm|skypack\.dev)\/([a-z0-9-]+)@/.exec(url) ?? [];
        if (!name) return route.abort();
        const bundle = join(folder, `${name}.bundle.js`);
        execFileSync(join(modules, '.bin', 'esbuild'), [
            join(modules, name),
            '--bundle',
            '--format=esm',
            `--outfile=${bundle}`,
            '--log-level=error',
        ]);
        return route.fulfill({ path: bundle, contentType: 'text/javascript' });
    });
}

// Frames per second while BODY, in the page, changes what is seen in each frame; PHASE goes from 0 to 1.
const FRAMES = `async (change) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const start = performance.now();
    let frames = 0;
    for (let phase = 0; phase < 1; phase = (performance.now() - start) / ${SECONDS * 1000}) {
        change(phase);
        await frame();
        frames++;
    }
    return (frames / (performance.now() - start)) * 1000;
}`;

// gmd's timeline: a fifth of it moves from end to end; then from all of it to a two-thousandth and back.
const OURS = {
    pan: `({ chart }) => (phase) => {
        const all = chart.full.to, middle = all * (0.2 + 0.6 * phase);
        chart.setView({ ...chart.view, from: middle - all * 0.1, to: middle + all * 0.1 });
    }`,
    zoom: `({ chart }) => (phase) => {
        const all = chart.full.to, width = all * 0.5 * 0.0005 ** (phase < 0.5 ? phase * 2 : 2 - phase * 2);
        chart.setView({ ...chart.view, from: all * 0.5 - width / 2, to: all * 0.5 + width / 2 });
    }`,
};

// PyTorch's: its handlers get the mouse's events, the wheel in and out, and a drag back and forth.
const THEIRS = {
    pan: `() => {
        const plot = document.querySelector('svg g g');
        const at = (type, x, to) => to.dispatchEvent(new MouseEvent(type, { clientX: x, clientY: 200, bubbles: true, view: window }));
        at('mousedown', 600, plot.querySelector('rect'));
        return (phase) => at('mousemove', 600 + 400 * Math.sin(phase * 2 * Math.PI), window);
    }`,
    zoom: `() => {
        const rect = document.querySelector('svg g g rect');
        return (phase) => rect.dispatchEvent(new WheelEvent('wheel', { deltaY: phase < 0.5 ? -20 : 20, clientX: 600,
            clientY: 200, bubbles: true, cancelable: true, view: window }));
    }`,
};

async function measure(page, motions, argument) {
    const rates = {};
    for (const [name, motion] of Object.entries(motions))
        rates[name] = await page.evaluate(`(${FRAMES})((${motion})(${argument}))`);
    return rates;
}

async function measureOurs(browser, path, renderer) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    await openDrawn(page, path, `#view=timeline&renderer=${renderer}`);
    const first = await page.evaluate(() => performance.now());
    const rates = await measure(page, OURS, 'window.gmdPage.views[1]');
    const shown = await page.evaluate(() => window.gmdPage.app.history().blocks);
    await context.close();
    return { first, ...rates, shown };
}

// PICKLE: what is chosen in the page, null: the page has it.
async function measureTheirs(browser, path, pickle, options) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    await serve(context, options);
    const page = await context.newPage();
    const failed = new Promise((_, reject) => {
        page.on('crash', () => reject(new Error('the tab crashed')));
        page.on('pageerror', (error) => reject(error));
        setTimeout(() => reject(new Error('Timeout')), PATIENCE).unref();
    });
    failed.catch(() => {});
    page.setDefaultTimeout(PATIENCE);
    const drawn = async () => {
        await page.goto(pathToFileURL(path).href, { timeout: PATIENCE, waitUntil: 'commit' });
        let start = 0;
        if (pickle) {
            await page.waitForSelector('input[type=file]');
            start = await page.evaluate(() => performance.now());
            await page.setInputFiles('input[type=file]', pickle);
        }
        await page.waitForSelector('svg polygon', { state: 'attached' });
        const end = await page.evaluate(async () => {
            for (let i = 0; i < 3; i++) await new Promise((resolve) => requestAnimationFrame(resolve));
            return performance.now();
        });
        return end - start;
    };
    const first = await Promise.race([drawn(), failed]);
    const rates = await Promise.race([measure(page, THEIRS, ''), failed]);
    const shown = (await page.locator('svg').first().locator('polygon').count()) - 1; // one is the sum of the rest
    return { first, ...rates, shown };
}

// The best of some tries, each in a browser of its own.
async function best(once) {
    let found = null;
    for (let i = 0; i < TRIES; i++) {
        const browser = await launchBrowser();
        try {
            const one = await once(browser);
            found = {
                first: Math.min(found?.first ?? Infinity, one.first),
                pan: Math.max(found?.pan ?? 0, one.pan),
                zoom: Math.max(found?.zoom ?? 0, one.zoom),
                shown: one.shown,
            };
        } catch (error) {
            return {
                failed: /Timeout/.test(error.message) ? `nothing after ${PATIENCE / 1000} s` : error.message,
            };
        } finally {
            await browser.close().catch(() => {});
        }
    }
    return found;
}

const megabytes = (path) => `${(statSync(path).size / 1e6).toFixed(1)} MB`;

function row(name, size, written, result) {
    const cells = result.failed
        ? [result.failed, '-', '-', '-']
        : [
              `${(result.first / 1000).toFixed(1)} s`,
              result.pan.toFixed(0),
              result.zoom.toFixed(0),
              result.shown.toLocaleString('en-US'),
          ];
    console.log(`| ${[name, size, written, ...cells].join(' | ')} |`);
}

async function compare(history, options) {
    const pickle = await unpacked(history, options.folder);
    const page = join(options.folder, 'gmd.html');
    const seconds = Array.from({ length: TRIES }, () => processorTime('report', pickle, '-o', page));
    const written = `${Math.min(...seconds).toFixed(1)} s`;
    console.log(`\n${basename(pickle)}, ${megabytes(pickle)}, load ${loadavg()[0].toFixed(1)}:\n`);
    console.log(
        '| page | file | written in, CPU | first drawing | pan, frames/s | zoom, frames/s | blocks drawn |',
    );
    console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |');
    for (const [renderer, name] of [
        ['canvas', 'gmd, canvas'],
        ['webgl', 'gmd, WebGL in software'],
    ])
        row(name, megabytes(page), written, await best((browser) => measureOurs(browser, page, renderer)));
    if (!options.viewer) return;
    await compareTheirs(pickle, options);
}

async function compareTheirs(pickle, options) {
    const page = join(options.folder, 'viewer.html');
    writeViewerPage(pickle, page);
    const size = megabytes(page);
    row('MemoryViz.js', size, '-', await best((browser) => measureTheirs(browser, page, null, options)));
    if (statSync(page).size < LONGEST) return;
    writeEmptyPage(page);
    const chosen = await best((browser) => measureTheirs(browser, page, pickle, options));
    row('MemoryViz.js, the file chosen in it', megabytes(pickle), '-', chosen);
}

const options = readArguments(process.argv.slice(2));
const browser = await launchBrowser();
console.log(`Chromium ${browser.version()}, headless; ${cpus().length} cores, ${cpus()[0].model}`);
await browser.close();
for (const history of options.histories) await compare(history, options);
