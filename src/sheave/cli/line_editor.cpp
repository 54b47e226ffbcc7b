#include "sheave/cli/line_editor.h"

#include <histedit.h>

#include <cerrno>
#include <clocale>
#include <cstdio>

#include "sheave/cli/interrupt.h"

namespace sheave {

struct LineEditor::State {
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string prompt;
  bool interrupted_before = false;

  static char* show_prompt(EditLine* editor) {
    void* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return static_cast<State*>(state)->prompt.data();
  }
};

LineEditor::LineEditor() : state_(std::make_unique<State>()) {
  std::setlocale(LC_CTYPE, ""); // libedit reads characters by the locale
  state_->editor = el_init("sheave", stdin, stderr, stderr);
  el_set(state_->editor, EL_CLIENTDATA, state_.get());
  el_set(state_->editor, EL_PROMPT, &State::show_prompt);
  el_set(state_->editor, EL_EDITOR, "emacs");
  state_->history = history_init();
  HistEvent event;
  history(state_->history, &event, H_SETSIZE, 1000);
  el_set(state_->editor, EL_HIST, history, state_->history);
}

LineEditor::~LineEditor() {
  history_end(state_->history);
  el_end(state_->editor);
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  state_->prompt = prompt;
  for (;;) {
    const InterruptScope scope;
    int count = 0;
    const char* typed = el_gets(state_->editor, &count);
    const bool interrupted = InterruptScope::flag().exchange(false);
    if (interrupted) {
      std::fputs("^C\n", stderr);
      if (state_->interrupted_before) {
        return std::nullopt;
      }
      state_->interrupted_before = true;
      std::fputs("(Ctrl-C again or Ctrl-D to leave)\n", stderr);
      el_reset(state_->editor);
      std::clearerr(stdin);
      continue;
    }
    if (typed == nullptr || count <= 0) {
      return std::nullopt;
    }
    state_->interrupted_before = false;
    std::string line(typed, static_cast<size_t>(count));
    while (line.ends_with('\n') || line.ends_with('\r')) {
      line.pop_back();
    }
    if (!line.empty()) {
      HistEvent event;
      history(state_->history, &event, H_ENTER, line.c_str());
    }
    return line;
  }
}

} // namespace sheave
