/** Commands to a running emulator over QMP, one JSON object a line: hot-plugging of hardware, keys. */
import net from 'node:net'

/** Runs one command at a control socket. Throws what the emulator has against it. */
export function qmp(path: string, execute: string, args: Readonly<Record<string, unknown>>): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ path })
    let text = ''
    socket.setEncoding('utf8')
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`the emulator hung up on ${execute}`)))
    socket.on('data', (more: string) => {
      text += more
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) {
        const { id, error } = JSON.parse(line)
        if (error) reject(new Error(`${execute}: ${error.desc}`))
        if (error || id === 'done') {
          resolve()
          socket.destroy()
        }
      }
    })
    for (const each of [{ execute: 'qmp_capabilities' }, { execute, arguments: args, id: 'done' }])
      socket.write(`${JSON.stringify(each)}\n`)
  })
}
