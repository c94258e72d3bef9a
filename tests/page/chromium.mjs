// Chromium, and gmd's page in it: for the tests, for the manual's pictures and for measurements.
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

// The sandbox of Chromium refuses to run as root, which tests in containers do.
export function launchBrowser() {
    return chromium.launch({
        executablePath: process.env.GMD_CHROMIUM,
        args: ['--no-sandbox', '--enable-unsafe-swiftshader'],
    });
}

// Opens the page in the file PATH in a Playwright PAGE, until it is drawn.
export async function openDrawn(page, path, fragment) {
    await page.goto(pathToFileURL(path).href + (fragment ?? ''), { timeout: 0 });
    await page.waitForFunction(() => document.querySelector('nav.views, [role=alert]'), null, { timeout: 0 });
    await settle(page);
}

// Until the state of the page is drawn and its charts are sharp.
export async function settle(page) {
    await page.evaluate(async () => {
        const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
        for (let i = 0; i < 3; i++) await frame();
        const charts = () =>
            window.gmdPage?.views.map((view) => view.chart).filter((chart) => chart?.node.isConnected) ?? [];
        for (let i = 0; i < 300 && charts().some((chart) => chart.frame); i++) await frame();
    });
}
