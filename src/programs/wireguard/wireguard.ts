/** wireguard: a WireGuard link in user space, for kernels without one. It is configured through a socket, as wg(8) does. */
import { messageOf } from '../../wire/error-message.ts'
import { Tunnel } from './tunnel.ts'

/** Where the configuration sockets are. */
const folder = '/run/wireguard'

/** Runs the link NAME until it is removed or the program is stopped. */
export async function main([name, ...rest]: string[]): Promise<number> {
  if (!name || rest.length > 0 || !/^[\w.-]{1,15}$/.test(name)) {
    console.error('usage: wireguard LINK (a name of at most 15 letters, digits, dots, dashes and underscores)')
    return 64
  }
  try {
    new Tunnel(name, `${folder}/${name}.sock`).run()
    return 0
  } catch (error) {
    console.error(`wireguard: ${messageOf(error)}`)
    return 1
  }
}
