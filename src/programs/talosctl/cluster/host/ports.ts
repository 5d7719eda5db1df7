import net from 'node:net'

/** A port of the host that nobody listens on at this moment. */
export function freePort(address: string): Promise<number> {
  return listen(address, 0)
}

/** Whether a TCP port of the host is free. */
export function isFree(address: string, port: number): Promise<boolean> {
  return listen(address, port).then(
    () => true,
    () => false,
  )
}

function listen(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address()
      server.close(() => (typeof address === 'object' && address ? resolve(address.port) : reject(new Error('listen: no address'))))
    })
  })
}
