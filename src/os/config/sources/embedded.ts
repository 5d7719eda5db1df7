import type { Kernel } from '../../kernel.ts'
import type { Source } from './source.ts'

/** Where an image carries a configuration of its own. */
export const embeddedPath = '/usr/local/etc/talos/config.yaml'

/** The configuration the image was made with. */
export const embedded = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere'> }): Source => ({
  name: 'embedded',
  retried: false,
  look() {
    try {
      return files.readTextIfThere(embeddedPath)
    } catch {
      // Once more: a medium that fails for a moment must not leave the machine in maintenance, open to everyone.
      return files.readTextIfThere(embeddedPath)
    }
  },
})
