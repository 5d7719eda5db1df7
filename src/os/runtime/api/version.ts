import { readers, unary } from '../../../rpc/server/method.ts'
import type { Machine } from '../../area.ts'

/** The version of the system, and the platform it runs on. */
export const version = ({ version, kernel }: Pick<Machine, 'version' | 'kernel'>) =>
  unary('machine.MachineService/Version', readers, () => ({
    messages: [
      {
        version: {
          tag: version.tag,
          sha: version.sha,
          built: version.built,
          goVersion: `bun${Bun.version}`,
          os: 'linux',
          arch: version.arch,
        },
        platform: { name: kernel.mode === 'container' ? 'container' : 'metal', mode: kernel.mode },
        features: { rbac: true },
      },
    ],
  }))
