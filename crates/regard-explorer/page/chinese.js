// The page in Chinese (simplified), by its English words.

/** @type {Record<string, string>} */
export const CHINESE = {
  // The page's head, sharing, help
  "Run": "模型", "Runs": "模型", "parameters": "参数个数", "{n} parameters": "{n} 个参数", "Share": "分享", "Light colors": "浅色", "Dark colors": "深色", "Keys and help": "按键与帮助", "Keys": "按键", "Close": "关闭",
  "What to do": "功能", "Look and change": "查看与改变", "Compare": "比较", "Training": "训练", "Errors": "错误",
  "Copy the link of this view": "复制此视图的链接", "Save the picture as SVG": "将图保存为 SVG", "Save the picture as PNG": "将图保存为 PNG", "Save a page that stands alone (HTML)": "保存为独立网页（HTML）",
  "Link copied.": "链接已复制。", "Link copied. The file you dropped is not part of it.": "链接已复制，但不包含您放入的文件。", "The link is in the address line.": "链接就在地址栏中。", "Saved {name}.": "已保存 {name}。",
  "to the input": "到输入框", "look, compare, training, errors": "查看、比较、训练、错误", "the map before, the next map": "上一张图、下一张图", "from cell to cell, from token to token": "在格子或词之间移动",
  "forbid the cell at the cursor, or allow it again": "禁止光标处的格子，或重新允许", "strengthen the cell at the cursor": "加强光标处的格子", "switch the chosen head off or on": "关闭或打开所选的头", "undo all changes": "撤销所有改变", "this list": "本列表",
  "Attention weights say what was read, not why it was answered so: attention is not an explanation. Change a weight and see whether the output changes.": "注意力权重说明模型读了什么，而不是为何如此回答：注意力不是解释。改变一个权重，看看输出是否随之改变。",
  "The program does not answer. Is `regard explore` still running?": "程序没有回应。`regard explore` 还在运行吗？", "Try again": "重试", "The link names a run that is not here: {run}.": "链接中的模型不在这里：{run}。",
  "There is no run to explore. Train one, such as by `regard train translate`, and start `regard explore` with its folder.": "没有可查看的模型。请先训练一个，例如 `regard train translate`，再用其文件夹启动 `regard explore`。",
  // The input
  "Type a sentence": "输入一个句子", "Text": "文本", "Question": "问题", "Node": "节点", "any": "任意", "previous": "上一个", "next": "下一个", "File": "文件", "Part": "数据部分", "training": "训练", "validation": "验证", "test": "测试",
  "0 to {most}; click a neighbor below to walk to it": "0 到 {most}；点击下方的邻居可走到它那里", "Drop a picture here, or": "将图片拖到这里，或", "Drop a WAV file here, or": "将 WAV 文件拖到这里，或", "Drop a file here, or": "将文件拖到这里，或", "choose a file": "选择文件",
  "{part} part, number {number}": "{part}部分，第 {number} 个", "node {node}": "节点 {node}", "{name} is too large.": "{name} 太大了。", "This model does not read files.": "此模型不读取文件。", "Number of the example": "例子的编号", "Example of a part": "数据中的例子", "Samples": "样例",
  // The answer
  "Answer": "回答", "Expected": "应为", "✓ the same": "✓ 相同", "score": "得分", "stopped before the end": "未写完就停止了", "from the cache": "来自缓存", "Undo all changes": "撤销所有改变", "Back to the old input": "回到原来的输入", "Forget the old input": "不再与原来的输入比较",
  "Computing…": "计算中…", "Type a sentence above, or choose an example.": "请在上方输入句子，或选择一个例子。", "Choose an input above.": "请在上方选择输入。", "Before": "之前", "After": "之后", "After: the same": "之后：相同", "probability": "概率", "(nothing)": "（空）",
  "This run has no checkpoint yet: watch its training, and ask when the first epoch is done.": "此模型还没有检查点：请先观看训练，第一轮结束后再提问。",
  // Looking
  "All maps": "所有图", "Scene": "场景", "layer {layer}": "第 {layer} 层", "layer {layer}, head {head}": "第 {layer} 层，第 {head} 头", "head {head}": "第 {head} 头", "over all": "总体", "mean of all": "全部的平均", "rollout": "逐层累积", "off": "关闭", "is off": "已关闭", "switch {name} off": "关闭{name}",
  "Matrix": "矩阵", "Lines": "连线", "Picture": "图片", "Graph": "图", "Curve": "曲线", "Sound": "声音", "Table": "表格", "How to look": "查看方式", "own scale": "单独的色阶",
  "entropy": "熵", "distance": "距离", "on the diagonal": "对角线上的份额", "mean over rows, in nats: 0 looks at one place only": "各行的平均，单位为奈特：0 表示只看一处", "how far away it looks, in tokens": "看得多远，以词元计", "share of the weight at the same place": "落在同一位置的权重份额",
  "Rollout: the layers' weights multiplied, the residual path included (Abnar and Zuidema, 2020).": "逐层累积：各层权重相乘，并计入残差通路（Abnar 与 Zuidema，2020）。",
  "Switch this head off or on": "关闭或打开此头", "There are no weights to draw.": "没有可画的权重。", "This model attends to nothing.": "此模型没有注意力。",
  "Point at a cell, or use the arrow keys. Click to keep it and change it.": "将指针移到格子上，或用方向键移动。点击可固定并改变它。", "This weight cannot be changed.": "此权重不能改变。", "Allow again": "重新允许", "Forbid": "禁止", "Strengthen": "加强", "Weaken": "减弱", "As it was": "恢复原样", "in all heads": "在所有头中", "for every row": "对每一行", "let go": "放开",
  "strongest": "最强", "nothing is attended to": "没有注意任何内容", "attended to by": "被谁注意", "Query": "查询", "rows": "行", "columns": "列", "Table of the weights": "权重表", "who attends": "谁注意", "to whom": "注意谁", "class": "类别", "weight": "权重", "Every weight as a number.": "每个权重的数值。",
  "{name}: {rows} × {columns} weights; arrow keys move, Enter takes a cell; as numbers under “Table”": "{name}：{rows} × {columns} 个权重；方向键移动，回车选定格子；数值见“表格”",
  "{name}: lines from each token to those it attends to; arrow keys walk the tokens; as numbers under “Table”": "{name}：从每个词到它所注意的词的连线；方向键在词间移动；数值见“表格”",
  "{name}: {rows} × {columns} patches; clear ones were attended to; arrow keys move; as numbers under “Table”": "{name}：{rows} × {columns} 个图块；清晰处受到注意；方向键移动；数值见“表格”",
  "Point at a token to see its lines alone.": "将指针移到一个词上，只看它的连线。", "Each token is on the color of its weight.": "每个词的底色表示其权重。", "Each token is on the color of its weight. Double-click a token to see what it attends to.": "每个词的底色表示其权重。双击一个词可查看它注意什么。",
  "What was attended to is clear, the rest is veiled. Point at a patch for its weight; click it to forbid or strengthen it.": "受到注意之处清晰，其余被遮淡。将指针移到图块上查看权重；点击可禁止或加强它。", "patch {row}, {column}": "图块 {row}, {column}", "patch row": "图块行", "patch column": "图块列",
  "Node {node} and its neighbors; as numbers under “Table”": "节点 {node} 及其邻居；数值见“表格”", "walk to {name}": "走到{name}", "Click a neighbor to walk to it; click an edge to forbid or strengthen it.": "点击邻居可走到它那里；点击边可禁止或加强它。",
  "The curve and its data; drag the query point; as numbers under “Table”": "曲线及其数据；可拖动查询点；数值见“表格”", "query point": "查询点", "Drag the query point, or move it by the arrow keys. A datum is as large as its weight there.": "拖动查询点，或用方向键移动。数据点的大小就是它在那里的权重。", "x asked for": "所问的 x", "x of the datum": "数据的 x",
  "Play": "播放", "Stop": "停止", "The recording cannot be played here.": "此录音无法在这里播放。", "Spectrogram with the weights of {name}; arrow keys move in time; as numbers under “Table”": "声谱图与{name}的权重；方向键在时间上移动；数值见“表格”", "Click a moment to see what it attends to.": "点击一个时刻，查看它注意什么。", "Point at a moment; the strip shows the weights of what is written there.": "将指针移到一个时刻；色带显示那里所写内容的权重。",
  "Gradient saliency beside attention": "梯度显著性与注意力对照", "Gradient saliency of each patch": "每个图块的梯度显著性", "Gradient × input": "梯度 × 输入", "Attention, the mean over rows and heads": "注意力（各行各头的平均）",
  "Beam": "集束", "Beam: what else could have been written": "集束搜索：还可能写出什么", "Beam of {width} as a tree; the hypotheses are listed below": "宽度为 {width} 的集束搜索树；候选列在下方", "in all": "合计", "fell out of the beam": "被集束淘汰", "log-probability": "对数概率",
  // Changing
  "Change, without training": "改变（无需训练）", "Undo all": "全部撤销", "This model has no attention that could be changed.": "此模型没有可改变的注意力。", "Switch a head off in its small map. Click a cell, an edge or a patch to forbid or strengthen it.": "可在小图中关闭一个头。点击格子、边或图块可禁止或加强它。",
  "Normalizer": "归一化", "as trained": "与训练时相同", "Temperature of the attention": "注意力的温度", "sharper": "更尖锐", "flatter": "更平缓", "Window": "窗口", "only so many on each side:": "每侧只看这么多：", "Edit one word": "改一个词", "Another word for {word}": "用另一个词代替 {word}", "Ask with this word": "用这个词提问", "edit the word {word}": "修改 {word}",
  "Changed": "已改变", "take back: {what}": "撤回：{what}", "forbidden": "已禁止", "row": "行", "column": "列", "every row": "每一行", "every column": "每一列", "all heads": "所有头",
  // Comparing, training, errors
  "Measures and cost": "指标与代价", "look at it": "查看", "training time": "训练时间", "epochs": "轮数", "There is only one run of this task. Start `regard explore` with several folders, such as those of `regard compare`.": "这个任务只有一个模型。请用多个文件夹启动 `regard explore`，例如 `regard compare` 产生的文件夹。",
  "nothing yet": "暂无", "over epochs": "随轮次", "epoch": "轮", "epoch {epoch}": "第 {epoch} 轮", "epoch {epoch} of {epochs}": "第 {epoch} 轮，共 {epochs} 轮", "finished": "已完成", "not training": "未在训练", "so far": "已用", "left": "剩余", "{n} examples a second": "每秒 {n} 个例子", "`regard train --resume` goes on; this page follows by itself.": "`regard train --resume` 可继续训练；本页会自动跟随。",
  "No epoch is done yet. The curves appear here by themselves.": "还没有完成一轮。曲线会自动出现在这里。", "Three samples, epoch by epoch": "三个样例，逐轮查看", "This training kept no samples.": "这次训练没有保存样例。", "Epoch": "轮", "Replay": "回放", "learning rate": "学习率", "loss": "损失", "accuracy": "准确率", "perplexity": "困惑度", "exact": "完全相同",
  "Sorted by": "排序", "length": "长度", "place in the data": "数据中的位置", "Order": "次序", "greatest first": "从大到小", "least first": "从小到大", "Label": "标签", "Predicted": "预测", "Right?": "是否正确", "wrong": "错误", "right": "正确", "Length from": "长度从", "to": "到", "Contains": "包含", "Clear": "清除", "Input": "输入", "Output": "输出", "number": "编号",
  "{matching} of {count} examples": "{count} 个例子中的 {matching} 个", "No example is like that.": "没有这样的例子。", "computing": "计算中", "Confusion: rows are the truth, columns what was predicted": "混淆矩阵：行为真值，列为预测", "{n} times {truth} taken for {predicted}": "{truth} 被当作 {predicted} {n} 次",
  // What the program calls things
  "output": "输出", "source": "源", "attends": "注意者", "is attended to": "被注意者", "time": "时间", "answer": "回答", "sentence": "句子", "query": "查询", "key": "键", "steps": "步", "seconds": "秒", "alignment": "对齐", "encoder": "编码器", "decoder": "解码器", "self-attention": "自注意力", "attention": "注意力", "gate": "门", "patches": "图块", "words": "词", "neighborhood": "邻域", "curve": "曲线", "weights": "权重", "sentences": "句子", "question": "问题", "segments": "片段",
  "writer over source": "写者看源", "pooling": "池化", "hops": "跳", "graph": "图", "kernel": "核", "share in the answer": "在回答中的份额", "how far the gate is open": "门开的程度", "mean of the neighbors": "邻居的平均", "weight of the sentence": "句子的权重", "weight of the question's word": "问题中词的权重",
  "this model attends to nothing: its context is a fixed vector and its encoder has no attention": "此模型没有注意力：上下文是固定向量，编码器也没有注意力", "this model attends to nothing: it is a CNN": "此模型没有注意力：它是 CNN", "this model attends to nothing: its pooling gives no weights and its encoder has no attention": "此模型没有注意力：池化不给出权重，编码器也没有注意力",
  "this model attends to nothing: only `encoder = \"transformer\"` has attention": "此模型没有注意力：只有 `encoder = \"transformer\"` 才有", "this model attends to nothing while it writes: its context is a fixed vector": "此模型写作时没有注意力：上下文是固定向量", "this model attends to nothing: it was trained with `attention = false`": "此模型没有注意力：训练时用了 `attention = false`",
  "the output's log-probability": "输出的对数概率",
};
