import { connect, createServer, type Socket } from 'node:net'

/** An HTTP proxy that only knows CONNECT. Names are looked up in `hosts`: host:port → port at the address of the proxy. */
export async function connectProxy(hosts: Record<string, number> = {}, hostname = '127.0.0.1') {
  const requests: string[] = []
  const server = createServer((client: Socket) => {
    client.on('error', () => {})
    client.once('data', (data) => {
      const head = data.toString('latin1')
      const [line = ''] = head.split('\r\n')
      requests.push(/^proxy-authorization: .*$/im.exec(head)?.[0] ? `${line} with credentials` : line)
      const port = hosts[line.split(' ')[1] ?? '']
      if (port === undefined) return client.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      const upstream = connect(port, hostname, () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n')
        client.pipe(upstream).pipe(client)
      })
      upstream.on('error', () => client.destroy())
      client.on('close', () => upstream.destroy())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, hostname, resolve))
  const { port } = server.address() as { port: number }
  return { url: `http://${hostname}:${port}`, requests, close: () => void server.close() }
}
