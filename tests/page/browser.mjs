// A browser for the tests: opens pages, and fails a test whose page reported an error or asked for the network.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before } from 'node:test';
import { join } from 'node:path';
import { launchBrowser, openDrawn } from './chromium.mjs';
import { pageOf } from './make_page.mjs';

export { settle } from './chromium.mjs';

const folder = process.env.GMD_PAGE_FOLDER;
const template = readFileSync(process.env.GMD_PAGE_TEMPLATE, 'utf8');
let browser;

before(async () => {
    mkdirSync(join(folder, 'pages'), { recursive: true });
    mkdirSync(join(folder, 'pictures'), { recursive: true });
    browser = await launchBrowser();
});
after(() => browser.close());

const made = new Map();

// The path of a synthetic page: 'small', 'hostile' or a number of events.
export function syntheticPage(kind) {
    if (!made.has(kind)) {
        made.set(kind, join(folder, 'pages', `${kind}.html`));
        writeFileSync(made.get(kind), pageOf(template, kind));
    }
    return made.get(kind);
}

export function pageFolder() {
    const path = join(folder, 'pages');
    mkdirSync(path, { recursive: true });
    return path;
}

// Exit code 1 is that of a finding.
export function runGmd(args, environment) {
    try {
        execFileSync(process.env.GMD, args, {
            cwd: pageFolder(),
            stdio: ['ignore', 'ignore', 'pipe'],
            env: { ...process.env, ...environment },
        });
    } catch (error) {
        if (error.status !== 1) throw error;
    }
}

// The path of a page that gmd writes with the arguments that ARGS(path) gives.
export function pageOfGmd(name, args, environment) {
    const path = join(pageFolder(), `${name}.html`);
    runGmd(args(path), environment);
    return path;
}

export function dataFile(name) {
    return join(process.env.GMD_TEST_DATA, name);
}

export function picturePath(name) {
    return join(folder, 'pictures', `${name}.png`);
}

// Pages between two tests, by their options: a new one is a process of the browser, which takes longer to start than
// most tests run.
const idle = new Map();

async function newPage(options) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.on('console', (message) => {
        if (message.type() === 'error') page.problems.push(message.text());
    });
    page.on('pageerror', (error) => page.problems.push(error.stack));
    page.on('request', (request) => {
        if (!/^(file|blob|data):/.test(request.url())) page.problems.push(`asked for ${request.url()}`);
    });
    return page;
}

export async function openPage(path, fragment, options) {
    const kind = JSON.stringify(options ?? {});
    const page = idle.get(kind) ?? (await newPage(options));
    idle.delete(kind);
    page.kind = kind;
    page.problems = [];
    await openDrawn(page, path, fragment);
    return page;
}

// Ends the document, with all that a test left in it, and what it stored; the pointer goes back to its corner.
export async function closePage(page) {
    assert.deepEqual(page.problems, []);
    if (idle.has(page.kind)) return page.context().close();
    await page.evaluate(() => localStorage.clear());
    await page.mouse.move(0, 0);
    await page.goto('about:blank');
    assert.deepEqual(page.problems, []);
    idle.set(page.kind, page);
}

export function stateOf(page) {
    return page.evaluate(() => window.gmdPage.app.state);
}

// Runs BODY with a page and closes it: errors of the page are errors of the test.
export async function withPage(path, fragment, body, options) {
    const page = await openPage(path, fragment, options);
    try {
        await body(page);
    } catch (error) {
        await page.context().close();
        throw error;
    }
    await closePage(page);
}
