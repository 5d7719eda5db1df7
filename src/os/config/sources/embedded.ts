import type { Kernel } from '../../kernel.ts'
import type { Source } from './source.ts'

/** The configuration inside an image. */
export const embeddedPath = '/usr/local/etc/talos/config.yaml'

/** The configuration the image was built with. */
export const embedded = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere'> }): Source => ({
  name: 'embedded',
  retried: false,
  look() {
    try {
      return files.readTextIfThere(embeddedPath)
    } catch {
      // Retried: a temporary read error must not leave the machine in maintenance, open to all.
      return files.readTextIfThere(embeddedPath)
    }
  },
})
