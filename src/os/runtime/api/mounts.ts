import { readers, unary } from '../../../rpc/server/method.ts'
import type { Kernel } from '../../kernel.ts'

/** What is mounted, and how full it is; what cannot be asked (a file system whose server is gone) counts as empty. */
export const mounts = ({ mount, files }: Pick<Kernel, 'mount' | 'files'>) =>
  unary('machine.MachineService/Mounts', readers, () => ({
    messages: [
      {
        stats: mount.mounts().map(({ source, target }) => {
          try {
            const { size, available } = files.statfs(target)
            return { filesystem: source, size, available, mountedOn: target }
          } catch {
            return { filesystem: source, size: 0, available: 0, mountedOn: target }
          }
        }),
      },
    ],
  }))
