import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { writeUserFiles } from '../../files/public.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import type { Task } from '../sequencer.ts'

/** Writes the configured files. Errors are logged and shown in `explain` and `health`, and the machine boots without them. */
export const putUserFiles = ({ kernel, store }: Pick<Machine, 'kernel' | 'store'>): Task => ({
  name: 'writeUserFiles',
  async run({ log }) {
    const files = declared(store.get(MachineConfig, 'v1alpha1'))?.machine.files ?? []
    try {
      await writeUserFiles(kernel, files)
    } catch (error) {
      log.error('write machine.files failed', { error })
      const message = 'not all files of the configuration could be written at this start: correct machine.files'
      store.put(Diagnostic, 'machine-files', { message, details: [messageOf(error)] })
    }
  },
})
