// Shows rasters of the timeline with WebGL2: a raster is a texture of classes, which one fragment shader turns into
// colours and patterns while it is stretched and moved. A frame costs the pixels of the canvas and nothing else.

import { CLASS_CACHED, CLASS_FIRST, EDGE, HIGHLIGHT } from './timeline_layout.js';
import { INK_SHARE, RESERVED, inkShader } from './patterns.js';

const VERTEX = `#version 300 es
void main() {
    gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0, 0.0, 1.0);
}`;

// u_map: x = pixel.x * map.x + map.y is the column, y likewise the row. The texture lies on its side: a column of the
// raster is a row of the texture, as it is computed.
const FRAGMENT = `#version 300 es
precision highp float;
precision highp int;
precision highp usampler2D;
uniform usampler2D u_raster;
uniform vec4 u_map;
uniform ivec2 u_size;
uniform vec3 u_palette[16];
uniform vec3 u_ground;
uniform vec3 u_cached;
uniform float u_dim;
uniform bool u_patterns;
uniform float u_height;
out vec4 color;

${inkShader()}

void main() {
    ivec2 at = ivec2(floor(gl_FragCoord.xy * u_map.xz + u_map.yw));
    if (at.x < 0 || at.y < 0 || at.x >= u_size.x || at.y >= u_size.y) discard;
    int value = int(texelFetch(u_raster, at.yx, 0).r);
    int index = (value & 63) - ${CLASS_FIRST};
    ivec2 p = ivec2(gl_FragCoord.x, u_height - gl_FragCoord.y);
    vec3 c = u_ground;
    if ((value & 63) == ${CLASS_CACHED})
        c = mix(u_ground, u_cached, has_ink(${RESERVED.kind}, p) ? ${RESERVED.ink} : ${RESERVED.colour});
    if (index >= 0) {
        c = u_palette[index];
        if (u_patterns && has_ink(index, p)) c *= ${INK_SHARE};
        if ((value & ${EDGE}) != 0) c = mix(c, u_ground, 0.45);
        if ((value & ${HIGHLIGHT}) == 0) c = mix(c, u_ground, u_dim);
    }
    color = vec4(c, 1.0);
}`;

function compile(gl) {
    const program = gl.createProgram();
    for (const [type, source] of [
        [gl.VERTEX_SHADER, VERTEX],
        [gl.FRAGMENT_SHADER, FRAGMENT],
    ]) {
        const shader = gl.createShader(type);
        gl.shaderSource(shader, source);
        gl.compileShader(shader);
        gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    return program;
}

function rendererOf(gl) {
    const info = gl.getExtension('WEBGL_debug_renderer_info');
    return info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : 'WebGL2';
}

// Whether WebGL2 is there and computed by a GPU: without one the plain canvas shows five times as many frames.
export function hasGpu() {
    const gl = document.createElement('canvas').getContext('webgl2', { failIfMajorPerformanceCaveat: true });
    if (!gl) return false;
    const software = /swiftshader|llvmpipe|softpipe|software|basic render/i.test(rendererOf(gl));
    gl.getExtension('WEBGL_lose_context')?.loseContext();
    return !software;
}

export class GlRasterPainter {
    // null where the browser has no WebGL2.
    static create(canvas) {
        const gl = canvas.getContext('webgl2', { antialias: false, depth: false, alpha: false });
        return gl ? new GlRasterPainter(canvas, gl) : null;
    }

    constructor(canvas, gl) {
        this.canvas = canvas;
        this.gl = gl;
        this.name = 'WebGL2';
        this.textures = new Map();
        this.program = compile(gl);
        this.uniforms = {};
        for (const name of [
            'raster',
            'map',
            'size',
            'palette',
            'ground',
            'cached',
            'dim',
            'patterns',
            'height',
        ])
            this.uniforms[name] = gl.getUniformLocation(this.program, `u_${name}`);
        gl.useProgram(this.program);
        gl.bindVertexArray(gl.createVertexArray());
    }

    limit() {
        return this.gl.getParameter(this.gl.MAX_TEXTURE_SIZE);
    }

    renderer() {
        return rendererOf(this.gl);
    }

    // SLOT names the texture: its raster is replaced.
    upload(slot, raster) {
        const { gl } = this;
        const texture = this.textures.get(slot)?.texture ?? gl.createTexture();
        gl.bindTexture(gl.TEXTURE_2D, texture);
        gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
        gl.texImage2D(
            gl.TEXTURE_2D,
            0,
            gl.R8UI,
            raster.rows,
            raster.columns,
            0,
            gl.RED_INTEGER,
            gl.UNSIGNED_BYTE,
            raster.pixels,
        );
        gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
        gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
        this.textures.set(slot, { texture, raster });
    }

    begin(style) {
        const { gl, uniforms, canvas } = this;
        gl.viewport(0, 0, canvas.width, canvas.height);
        gl.clearColor(...style.ground, 1);
        gl.clear(gl.COLOR_BUFFER_BIT);
        gl.uniform3fv(uniforms.palette, style.palette.flat());
        gl.uniform3fv(uniforms.ground, style.ground);
        gl.uniform3fv(uniforms.cached, style.cached);
        gl.uniform1f(uniforms.dim, style.dim);
        gl.uniform1i(uniforms.patterns, style.patterns ? 1 : 0);
        gl.uniform1f(uniforms.height, canvas.height);
    }

    // Draws the texture of SLOT as VIEW { from, to, bottom, top } sees it.
    draw(slot, view) {
        const { gl, uniforms, canvas } = this;
        const { texture, raster } = this.textures.get(slot);
        const columns = raster.columns / (raster.to - raster.from);
        const rows = raster.rows / (raster.top - raster.bottom);
        gl.bindTexture(gl.TEXTURE_2D, texture);
        gl.uniform2i(uniforms.size, raster.columns, raster.rows);
        gl.uniform4f(
            uniforms.map,
            ((view.to - view.from) / canvas.width) * columns,
            (view.from - raster.from) * columns,
            ((view.top - view.bottom) / canvas.height) * rows,
            (view.bottom - raster.bottom) * rows,
        );
        gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
}
