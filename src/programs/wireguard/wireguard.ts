/** wireguard: a WireGuard link in user space, for kernels without one. It is configured through a socket, as wg(8) does. */
import { messageOf } from '../../wire/error-message.ts'
import { Tunnel } from './tunnel.ts'

/** Where the configuration sockets are looked for by other programs. */
const usualFolder = '/run/wireguard'

/** Runs the link NAME until it is removed or the program is stopped. */
export async function main([name, folder = usualFolder, ...rest]: string[]): Promise<number> {
  if (!name || rest.length > 0 || !/^[\w.-]{1,15}$/.test(name)) {
    console.error(
      `usage: wireguard LINK [FOLDER]: LINK is a name of at most 15 letters, digits, dots, dashes and underscores, FOLDER the one of its socket (by default ${usualFolder})`,
    )
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
