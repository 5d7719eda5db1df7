/** A platform's metadata over HTTP on all addresses of its namespace: `metadata-server.ts <platform>`. */
import { recordings } from '../../os/network/platform/recordings.ts'

const [name = ''] = process.argv.slice(2)
const { answers = {} } = recordings[name]!

const server = Bun.serve({
  hostname: '0.0.0.0',
  port: 80,
  async fetch(request) {
    const { pathname, search } = new URL(request.url)
    const answer = answers[`http://${request.headers.get('host')}${pathname}${search}`]
    const { method } = request
    const body = method === 'POST' ? await request.text() : undefined
    const text = typeof answer === 'function' ? answer({ method, headers: Object.fromEntries(request.headers), body }) : answer
    if (body !== undefined && text !== undefined) console.log(`posted ${body.replaceAll('\n', ' ')}`)
    return text === undefined ? new Response('there is none', { status: 404 }) : new Response(text)
  },
})
console.log(`ready on ${server.port}`)
