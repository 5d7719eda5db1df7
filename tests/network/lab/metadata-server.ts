/** A platform's metadata over HTTP on all addresses of its namespace: `metadata-server.ts <platform>`. */
import { recordings } from '../../os/network/platform/recordings.ts'

const [name = ''] = process.argv.slice(2)
const { answers = {} } = recordings[name]!

const server = Bun.serve({
  hostname: '0.0.0.0',
  port: 80,
  async fetch(request, server) {
    const { pathname, search } = new URL(request.url)
    // As at Scaleway: user data is for the root user.
    if (name === 'scaleway' && pathname.startsWith('/user_data/') && (server.requestIP(request)?.port ?? 0) >= 1024)
      return new Response('not from a privileged port', { status: 403 })
    const answer = answers[`http://${request.headers.get('host')}${pathname}${search}`]
    const { method } = request
    const body = method === 'POST' ? await request.text() : undefined
    const text = typeof answer === 'function' ? answer({ method, headers: Object.fromEntries(request.headers), body }) : answer
    if (body !== undefined && text !== undefined) console.log(`posted ${body.replaceAll('\n', ' ')}`)
    return text === undefined ? new Response('there is none', { status: 404 }) : new Response(text)
  },
})
console.log(`ready on ${server.port}`)
