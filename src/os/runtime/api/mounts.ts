import { readers, unary } from '../../../rpc/server/method.ts'
import type { Kernel } from '../../kernel.ts'

/** Mounted file systems and their usage; one that cannot be queried (its server is gone) counts as empty. */
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
