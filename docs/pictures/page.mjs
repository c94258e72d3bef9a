// Takes the pictures of docs/page.md: PAGES is the folder of the pages, PICTURES takes the pictures. make_page runs it.
import { join } from 'node:path';
import { launchBrowser, openDrawn, settle } from './chromium.mjs';

const WIDTH = 1280,
    MARGIN = 4; // pixels below what is shown

// { name, page, steps: what a reader clicks, until: the last thing that is shown }
const PICTURES = [
    { name: 'page-leak-finding', page: 'leak', until: '.finding' },
    { name: 'page-leak', page: 'leak', steps: ['.evidence a'], until: '.timeline .legend' },
    {
        name: 'page-leak-flame',
        page: 'leak',
        steps: ['.finding .evidence li:last-child a'],
        until: '.flame .scroll tbody tr:nth-child(3)',
        dark: true,
    },
    { name: 'page-oom-finding', page: 'oom', until: '.finding' },
    { name: 'page-oom', page: 'oom', steps: ['.evidence a'], until: '.state .legend' },
    {
        name: 'page-settings',
        page: 'settings',
        steps: ['.comparison a', 'text=Where the upper reserved most'],
        until: '.compare .legend',
    },
    {
        name: 'page-settings-state',
        page: 'settings',
        steps: ['.comparison a', 'text=Where the upper reserved most', '.views a:has-text("State")'],
        until: '.state .legend',
    },
    { name: 'page-reuse-finding', page: 'reuse', until: '.finding' },
    { name: 'page-reuse', page: 'reuse', steps: ['.evidence a'], until: '.timeline .legend' },
    {
        name: 'page-reuse-state',
        page: 'reuse',
        steps: ['.evidence li:last-child a'],
        until: '.state .legend',
    },
];

async function take(browser, { name, page: file, steps, until, dark }) {
    const context = await browser.newContext({
        viewport: { width: WIDTH, height: 900 },
        colorScheme: dark ? 'dark' : 'light',
        reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    await openDrawn(page, join(process.env.PAGES, `${file}.html`));
    for (const step of steps ?? []) {
        await page.locator(step).first().click();
        await settle(page);
    }
    await page.mouse.move(0, 0); // what a pointer is over looks different
    await page.evaluate(() => document.activeElement.blur());
    await settle(page);
    const box = await page.locator(until).first().boundingBox();
    await page.screenshot({
        path: join(process.env.PICTURES, `${name}.png`),
        clip: { x: 0, y: 0, width: WIDTH, height: Math.ceil(box.y + box.height + MARGIN) },
        fullPage: true,
    });
    await context.close();
}

const browser = await launchBrowser();
for (const picture of PICTURES) await take(browser, picture);
await browser.close();
