/** Upgrades of a machine with arm64: a good release is taken, from one whose kernel panics the machine comes back. */
import { join } from 'node:path'
import { disk, TestMachine } from '../machine.ts'
import { UpgradeSteps } from '../upgrade/steps.ts'
import { arm64Emulator } from './emulator.ts'

const steps = new UpgradeSteps({
  name: 'upgrade-arm64',
  arch: 'arm64',
  start(folder, cdrom) {
    const console = join(folder, 'console.log')
    const { file } = disk(join(folder, 'disk.img'), 8 * 1024)
    return TestMachine.start({ console, emulator: arm64Emulator({ folder, console, disk: file, cdrom, memory: 2048 }) })
  },
})
steps.installs()
steps.takes('good')
steps.comesBack('panics', /Kernel panic/, 'did not come up')
