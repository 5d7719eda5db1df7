/** A platform's metadata over HTTP on all addresses of its namespace: `metadata-server.ts <platform>`. */
import { said } from '../os/network/platform/said.ts'

const [name = ''] = process.argv.slice(2)
const { answers = {} } = said[name]!

const server = Bun.serve({
  hostname: '0.0.0.0',
  port: 80,
  fetch(request) {
    const { pathname, search } = new URL(request.url)
    const answer = answers[`http://${request.headers.get('host')}${pathname}${search}`]
    const text = typeof answer === 'function' ? answer({ method: request.method, headers: Object.fromEntries(request.headers) }) : answer
    return text === undefined ? new Response('there is none', { status: 404 }) : new Response(text)
  },
})
console.log(`ready on ${server.port}`)
